#include "scenarios/text/data_directory.h"

#include <cstdlib>

#include "scenarios/text/errors.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

bool has_data(const fs::path& directory) {
  std::error_code none;
  return fs::is_directory(directory / "models" / "machines", none) &&
         fs::is_directory(directory / "scenarios", none);
}

fs::path find_data() {
  std::error_code none;
  fs::path above = fs::read_symlink("/proc/self/exe", none).parent_path();
  while (!above.empty()) {
    if (has_data(above)) return above;
    if (const fs::path installed = above / "share" / "foretrace"; has_data(installed)) {
      return installed;
    }
    if (above == above.root_path()) break;
    above = above.parent_path();
  }
  if (const char* named = std::getenv("FORETRACE_DATA"); named != nullptr && has_data(named)) {
    return named;
  }
  throw UsageError{
      "cannot find foretrace's machine files and scenarios\n"
      "  hint: they lie above the program or in share/foretrace beside it; set FORETRACE_DATA to "
      "the directory that has models/machines and scenarios"};
}

}  // namespace

const fs::path& data_directory() {
  static const fs::path kDirectory = find_data();
  return kDirectory;
}

}  // namespace foretrace
