// Which machine a name means: a file, one of the directory's, or a composition of parts.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

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

/// A search loads its machine for every point.
void show_once(const Diagnostics& warnings, const std::string& file, std::string_view text) {
  static std::set<std::string> shown;
  if (!warnings.empty() && shown.insert(file).second) print_error("{}", render(warnings, text));
}

}  // namespace

Machine load_machine(const std::string& name_or_path) {
  std::filesystem::path path{name_or_path};
  if (path.extension() != ".yaml") {
    path = machine_directory() / (name_or_path + ".yaml");
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
  const std::string text = read_text_file(path);
  Diagnostics warnings;
  const Checked<Machine> machine = read_machine(text, path.string(), &warnings);
  if (!machine) throw UsageError{render(machine.error(), text)};
  show_once(warnings, path.string(), text);
  return *machine;
}

}  // namespace foretrace
