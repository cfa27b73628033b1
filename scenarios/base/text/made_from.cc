#include "scenarios/base/text/made_from.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstring>
#include <mutex>
#include <system_error>

#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/values/sha1.h"

namespace foretrace {
namespace {

constexpr std::string_view kData = "data:";
constexpr std::size_t kLargestFile = std::size_t{2} << 30;  // what any reader takes

struct ReadFiles {
  std::mutex mutex;
  FileDigests all;
};

ReadFiles& read_files() {
  static ReadFiles files;
  return files;
}

/// Of the program, which comes first: the note that the linker wrote.
int take_build_id(dl_phdr_info* info, std::size_t /*size*/, void* to) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);  // NOLINT
    for (std::size_t left = part.p_memsz; left >= sizeof(ElfW(Nhdr));) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const auto whole = [&](std::size_t size) {
        return (size + part.p_align - 1) & -part.p_align;
      };
      const std::size_t name = sizeof note;
      const std::size_t content = whole(name + note.n_namesz);
      const std::size_t end = whole(content + note.n_descsz);
      if (end > left || end == 0) break;
      if (note.n_type == NT_GNU_BUILD_ID &&
          std::string_view{at + name, note.n_namesz} == std::string_view{"GNU\0", 4}) {
        for (std::size_t k = 0; k < note.n_descsz; ++k) {
          *static_cast<std::string*>(to) +=
              fmt::format("{:02x}", static_cast<unsigned char>(at[content + k]));
        }
        return 1;
      }
      at += end;
      left -= end;
    }
  }
  return 1;  // no other object is asked
}

}  // namespace

std::string name_in_digests(const std::filesystem::path& file) {
  if (!file.is_absolute() || !has_data_directory()) return file.string();
  const std::filesystem::path inside = file.lexically_relative(data_directory());
  if (inside.empty() || *inside.begin() == "..") return file.string();
  return std::string{kData} + inside.string();
}

std::string digest_of(std::string_view bytes) {
  NameDigest digest;
  digest.update(bytes);
  return digest.finish();
}

const std::string& build_id() {
  static const std::string kId = [] {
    std::string id;
    ::dl_iterate_phdr(take_build_id, &id);
    return id.empty() ? std::string{"none"} : id;
  }();
  return kId;
}

FileDigests digests_of_read_files() {
  ReadFiles& files = read_files();
  const std::lock_guard lock{files.mutex};
  return files.all;
}

std::string digest_now(const std::string& name) {
  std::filesystem::path file{name};
  if (name.starts_with(kData)) {
    if (!has_data_directory()) return {};
    file = data_directory() / name.substr(kData.size());
  }
  const auto bytes = read_plain_file(file, kLargestFile);
  return bytes ? digest_of(*bytes) : std::string{};
}

std::string digest_as_read(const std::string& file) {
  ReadFiles& files = read_files();
  const std::lock_guard lock{files.mutex};
  const auto found = files.all.find(name_in_digests(shipped_file(file)));
  return found == files.all.end() ? std::string{} : found->second;
}

void note_read_file(const std::filesystem::path& file, std::string digest) {
  ReadFiles& files = read_files();
  const std::lock_guard lock{files.mutex};
  files.all.insert_or_assign(name_in_digests(file), std::move(digest));
}

}  // namespace foretrace
