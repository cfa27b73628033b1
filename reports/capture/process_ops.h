// The operations of one captured process, in the order of its calls.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reports/capture/captured_scenario.h"
#include "reports/capture/kernel_kind.h"
#include "reports/capture/steps.h"

namespace foretrace::capture {

struct ProcessOps {
  std::string text;                            ///< "- spin: {...}" by line, indented
  std::set<std::int64_t> streams;              ///< declared as s7, s17, ...
  std::set<std::string> groups;                ///< of collectives, as the trace writes their ranks
  std::size_t events = 0;                      ///< of `order`
  std::uint64_t largest_bytes = 0;             ///< a collective's buffer needs so much
  std::int64_t begin = 0, end = 0;             ///< of the iteration: Step::whole
  std::map<std::string, std::size_t> guesses;  ///< how often each was made
  std::vector<std::string> notes;
  std::map<KernelKind, std::int64_t> kernel_time;  ///< ns, of what is a kernel of captured time
  std::int64_t unexplained = 0;  ///< ns in which queued work waited for nothing that is known
  bool has_host_time = false;
  std::int64_t collective_time = 0;  ///< ns, captured, of those that the model times
};

/// `growth`: processes of the scenario to those captured, as numerator and denominator.
ProcessOps ops_of(const Capture& capture, const Process& process, const Started& started,
                  const Step& step, const ScenarioOptions& options,
                  std::pair<std::int64_t, std::int64_t> growth);

}  // namespace foretrace::capture
