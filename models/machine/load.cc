// Which machine a name means: a file, one of the directory's, or a composition of parts.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "models/machine/kept.h"
#include "models/machine/machine.h"
#include "models/machine/parts/composition.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace {

std::filesystem::path machine_directory() {
  const char* const set = std::getenv("FORETRACE_MACHINES");
  if (set != nullptr && *set != '\0') return set;
  return data_directory() / "models" / "machines";
}

std::vector<std::string> machine_names() {
  const std::filesystem::path directory = machine_directory();
  std::error_code wrong;
  std::filesystem::directory_iterator files{directory, wrong};
  if (wrong) {
    throw UsageError{
        fmt::format("{}: {}\n  hint: FORETRACE_MACHINES names the directory of machine "
                    "files",
                    directory.string(), wrong.message())};
  }
  std::vector<std::string> names;
  for (const auto& entry : files) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

namespace {

/// A machine's file as it was read, and what is to be said of it.
struct ReadMachine {
  Machine machine;
  Diagnostics warnings;
  std::string file, text;
};

ReadMachine read_file(const std::filesystem::path& file) {
  ReadMachine read{
      .machine = {}, .warnings = {}, .file = file.string(), .text = read_text_file(file)};
  Checked<Machine> machine = read_machine(read.text, read.file, &read.warnings);
  if (!machine) throw UsageError{render(machine.error(), read.text)};
  read.machine = *std::move(machine);
  return read;
}

/// A search loads its machine for every point.
void show_once(const ReadMachine& read) {
  static std::set<std::string> shown;
  if (!read.warnings.empty() && shown.insert(read.file).second) {
    print_error("{}", render(read.warnings, read.text));
  }
}

std::filesystem::path file_of(const std::string& name) {
  return machine_directory() / (name + ".yaml");
}

std::map<std::string, ReadMachine>& kept_machines() {
  static std::map<std::string, ReadMachine> kept;
  return kept;
}

}  // namespace

void keep_machine(const std::string& name) {
  constexpr std::size_t kMost = 32;
  std::map<std::string, ReadMachine>& kept = kept_machines();
  if (kept.size() >= kMost || kept.contains(name)) return;
  if (std::filesystem::exists(file_of(name))) kept.emplace(name, read_file(file_of(name)));
}

Machine load_machine(const std::string& name_or_path) {
  const auto kept = kept_machines().find(name_or_path);
  if (kept != kept_machines().end()) {
    show_once(kept->second);
    return kept->second.machine;
  }
  std::filesystem::path path{name_or_path};
  if (path.extension() != ".yaml") {
    path = file_of(name_or_path);
    if (!std::filesystem::exists(path)) {
      if (auto machine = composed_machine(name_or_path)) return *std::move(machine);
      std::vector<std::string> names = machine_names();
      for (const NamedComposition& one : named_compositions()) names.push_back(one.name);
      const std::string nearest = suggest(name_or_path, names);
      throw UsageError{fmt::format("unknown machine '{}'\n  hint: {}", name_or_path,
                                   nearest.empty()
                                       ? "'foretrace list machines' prints those that there are; "
                                         "8xB200+ib-ndr names one by its parts"
                                       : nearest)};
    }
  }
  ReadMachine read = read_file(path);
  show_once(read);
  return std::move(read.machine);
}

}  // namespace foretrace
