#include "reports/timeline/origin.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {

std::string scenario_path(const std::string& file) {
  namespace fs = std::filesystem;
  try {
    std::error_code none;
    const fs::path below = fs::weakly_canonical(file, none)
                               .lexically_relative(fs::weakly_canonical(data_directory(), none));
    if (below.empty() || *below.begin() == "..") return file;
    if (fs::path{file}.is_absolute() || *below.begin() == "scenarios")
      return below.generic_string();
  } catch (const UsageError&) {  // a program that is installed without its data
  }
  return file;
}

Origin origin_of(const Program& program) {
  Origin origin;
  origin.program_hash = program.hash;
  origin.scenario = program.name;
  origin.file = scenario_path(program.file);
  return origin;
}

bool has_ops_of(const Timeline& timeline, const std::vector<OpRow>& rows) {
  // What a framework itself called is none of the program's.
  const auto own = [](const std::vector<OpRow>& ops) {
    std::vector<const OpRow*> kept;
    for (const OpRow& op : ops)
      if (!op.captured) kept.push_back(&op);
    return kept;
  };
  const auto alike = [](const OpRow* a, const OpRow* b) {
    return a->kind == b->kind && a->loops == b->loops;
  };
  return std::ranges::equal(own(timeline.ops), own(rows), alike);
}

}  // namespace foretrace
