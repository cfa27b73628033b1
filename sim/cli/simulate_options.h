// What `foretrace simulate` was asked, and what its two kinds of files share: scenarios with
// threads, and those with requests (`serving:`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/timeline/timeline.h"
#include "scenarios/read/scenario.h"
#include "sim/cli/options.h"
#include "sim/simulate.h"

namespace foretrace {

struct SimulateOptions {
  std::string file;
  std::string machine = kDefaultMachine;
  std::vector<std::string> with, without;
  std::string run;
  std::string frontend = "cuda";
  Fidelity fidelity = Fidelity::Flow;
  bool one_of_each = false;
  bool few_passes = false;
  std::string host;
  std::optional<std::uint32_t> nodes;
  std::string placement;
  ParameterValues parameters;
  OutputFormat format = OutputFormat::Text;
  bool machine_is_named = false;
  bool answers = true;  ///< on stdout
};

/// `text` is what the program was read from. Throws UsageError where it is too large.
Timeline simulated(const Program& program, const Machine& machine, const SimulateOptions& options,
                   const std::string& text, bool one_of_each);

/// Throws UsageError where the files of a run could not be written, before any work.
void check_run_directory(const SimulateOptions& options);
/// The timeline, and the same for Perfetto.
void write_run(const Timeline& timeline, const std::string& directory);

/// Requests and an engine: its iterations are simulated once, and the traffic goes through them.
/// Returns an exit code.
int simulate_serving(const SimulateOptions& options, const ServingScenario& scenario,
                     const std::string& text);

}  // namespace foretrace
