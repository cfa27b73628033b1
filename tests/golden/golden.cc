#include "tests/golden/golden.h"

#include <fstream>

#include "reports/timeline/timeline_json.h"
#include "scenarios/base/text/data_directory.h"

namespace foretrace::test {

namespace fs = std::filesystem;

fs::path goldens() { return data_directory() / "tests" / "golden"; }

fs::path golden_of(const Shipped& scenario) {
  return (goldens() / fs::relative(scenario.file, "scenarios")).replace_extension(".txt");
}

Recorded recorded_in(const fs::path& run) { return record(read_timeline(run / kPredictedFile)); }

void rewrite_golden(const Shipped& scenario, const Recorded& now) {
  const fs::path file = golden_of(scenario);
  fs::create_directories(file.parent_path());
  std::ofstream out;
  out.exceptions(std::ios::failbit | std::ios::badbit);
  out.open(file, std::ios::binary);
  out << "# foretrace simulate " << scenario.file << " --machine " << scenario.machine << "\n"
      << to_text(now);
}

std::string difference_from_golden(const Shipped& scenario, const Recorded& now) {
  const fs::path file = golden_of(scenario);
  if (!fs::exists(file)) return file.string() + " is missing: build the target rewrite_goldens";
  const std::string differs = difference(from_text(read_file(file)), now);
  return differs.empty() ? differs : file.string() + "\n" + differs;
}

}  // namespace foretrace::test
