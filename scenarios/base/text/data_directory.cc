#include "scenarios/base/text/data_directory.h"

#include <sys/auxv.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

bool has_data(const fs::path& directory) {
  std::error_code none;
  return fs::is_directory(directory / "models" / "machines", none) &&
         fs::is_directory(directory / "scenarios", none);
}

/// Where this program's file is; without /proc (a bare root), by the name that it was called by.
fs::path own_file() {
  std::error_code none;
  fs::path file = fs::read_symlink("/proc/self/exe", none);
  if (!file.empty()) return file;
  const auto* called = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  return called == nullptr ? fs::path{} : fs::canonical(called, none);
}

/// FORETRACE_DATA; empty is as good as not set. Null: it is not.
const char* named_data() {
  const char* named = std::getenv("FORETRACE_DATA");
  return named == nullptr || *named == '\0' ? nullptr : named;
}

/// Empty when there is none.
fs::path find_data() {
  std::error_code none;
  // What the user names comes first, and what it lacks is not looked for elsewhere.
  if (const char* named = named_data()) return has_data(named) ? fs::path{named} : fs::path{};
  fs::path above = own_file().parent_path();
  while (!above.empty()) {
    if (has_data(above)) return above;
    if (const fs::path installed = above / "share" / "foretrace"; has_data(installed)) {
      return installed;
    }
    if (above == above.root_path()) break;
    above = above.parent_path();
  }
  return {};
}

const fs::path& found_data() {
  static const fs::path kDirectory = find_data();
  return kDirectory;
}

}  // namespace

bool has_data_directory() { return !found_data().empty(); }

const fs::path& data_directory() {
  if (!found_data().empty()) return found_data();
  const char* named = named_data();
  throw UsageError{
      std::string{"cannot find foretrace's machine files and scenarios"} +
      (named == nullptr ? std::string{} : std::string{"; FORETRACE_DATA="} + named + " has none") +
      "\n  hint: they lie above the program or in share/foretrace beside it; set FORETRACE_DATA to "
      "the directory that has models/machines and scenarios"};
}

std::vector<fs::path> shipped_scenarios() {
  std::vector<fs::path> found;
  std::error_code none;
  if (found_data().empty()) return found;
  for (const auto& entry : fs::recursive_directory_iterator{found_data() / "scenarios", none}) {
    if (entry.path().extension() != ".yaml") continue;
    found.push_back(entry.path().lexically_relative(found_data()));
  }
  std::ranges::sort(found);
  return found;
}

fs::path shipped_file(const fs::path& file) {
  std::error_code none;
  if (!file.is_relative() || fs::exists(file, none) || found_data().empty()) return file;
  fs::path shipped = found_data() / file;
  return fs::exists(shipped, none) ? shipped : file;
}

}  // namespace foretrace
