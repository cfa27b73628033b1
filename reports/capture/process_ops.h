// The operations of one captured process, in the order of its calls.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reports/capture/captured_scenario.h"

namespace foretrace::capture {

struct ProcessOps {
  std::string text;                            ///< "- spin: {...}" by line, indented
  std::set<std::int64_t> streams;              ///< declared as s7, s17, ...
  std::set<std::string> groups;                ///< of collectives, as the trace writes their ranks
  std::size_t events = 0;                      ///< of `order`
  std::uint64_t largest_bytes = 0;             ///< a collective's buffer needs so much
  std::int64_t begin = 0, end = 0;             ///< of the iteration: first call, last work
  std::map<std::string, std::size_t> guesses;  ///< how often each was made
};

/// `growth`: processes of the scenario to those captured, as numerator and denominator.
/// `group_name` of a collective's ranks is what group_name() says.
ProcessOps ops_of(const Capture& capture, const Process& process, const Window& window,
                  const ScenarioOptions& options, std::pair<std::int64_t, std::int64_t> growth);

/// "group_0_1" for "[0, 1]".
std::string group_name(const std::string& ranks);

}  // namespace foretrace::capture
