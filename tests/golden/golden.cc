#include "tests/golden/golden.h"

#include "reports/timeline/timeline_json.h"
#include "scenarios/text/data_directory.h"

namespace foretrace::test {

namespace fs = std::filesystem;

fs::path goldens() { return data_directory() / "tests" / "golden"; }

fs::path golden_of(const Shipped& scenario) {
  return (goldens() / fs::relative(scenario.file, "scenarios")).replace_extension(".txt");
}

Recorded recorded_in(const fs::path& run) { return record(read_timeline(run / kPredictedFile)); }

std::string difference_from_golden(const Shipped& scenario, const Recorded& now) {
  const fs::path file = golden_of(scenario);
  if (!fs::exists(file)) return file.string() + " is missing: build the target rewrite_goldens";
  const std::string differs = difference(from_text(read_file(file)), now);
  return differs.empty() ? differs : file.string() + "\n" + differs;
}

}  // namespace foretrace::test
