#include <filesystem>

#include "reports/export/perfetto_writer.h"
#include "reports/timeline/timeline_json.h"
#include "reports/timeline/write_file.h"
#include "sim/cli/simulate_options.h"

namespace foretrace {
namespace {

constexpr const char* kTraceFile = "trace.pftrace";

}  // namespace

void write_run(const Timeline& timeline, const std::string& to) {
  const std::filesystem::path directory = to;
  make_directory(directory);
  const DirectoryTurn turn{directory};  // both files of one run
  write_timeline(timeline, directory / kPredictedFile);
  const Timeline* const only = &timeline;
  write_file(directory / kTraceFile, [&](std::ostream& out) { write_perfetto({&only, 1}, out); });
}

void check_run_directory(const SimulateOptions& options) {
  const std::filesystem::path run = options.run;
  if (options.run.empty() || !std::filesystem::is_directory(run)) return;
  check_outputs({run / kPredictedFile, run / kTraceFile});
}

Timeline simulated(const Program& program, const Machine& machine, const SimulateOptions& options,
                   const std::string& text, bool one_of_each) {
  try {
    return simulate(program, machine, options.fidelity,
                    one_of_each ? Simulated::OneOfEach : Simulated::All);
  } catch (const TooLarge& error) {
    throw UsageError{render(error.problems(), text)};
  }
}

}  // namespace foretrace
