#include "scenarios/interchange/chakra_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "scenarios/base/text/errors.h"

namespace foretrace::interchange {

void fail(const std::string& file, const ChakraNode& node, std::string_view what) {
  throw UsageError{fmt::format("{}: byte {}: node {}: {}", file, node.byte, node.id, what)};
}

std::vector<std::uint64_t> deps_of(const ChakraNode& node, bool with_control) {
  std::vector<std::uint64_t> deps = node.data;
  if (with_control) deps.insert(deps.end(), node.control.begin(), node.control.end());
  return deps;
}

namespace {

ChakraOrder ordered(const std::string& file, const ChakraTrace& trace, bool with_control) {
  ChakraOrder order;
  order.with_control = with_control;
  std::unordered_map<std::uint64_t, std::size_t> place;
  for (std::size_t i = 0; i < trace.nodes.size(); ++i) {
    if (!place.try_emplace(trace.nodes[i].id, i).second) {
      fail(file, trace.nodes[i], "its id is that of another node, too");
    }
  }
  std::vector<std::vector<std::size_t>> behind(trace.nodes.size());
  std::vector<std::size_t> waits(trace.nodes.size());
  using Ready = std::pair<std::uint64_t, std::size_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::size_t i = 0; i < trace.nodes.size(); ++i) {
    for (const std::uint64_t dep : deps_of(trace.nodes[i], with_control)) {
      const auto found = place.find(dep);
      if (found == place.end()) {
        ++order.missing;
        continue;
      }
      behind[found->second].push_back(i);
      ++waits[i];
    }
    if (waits[i] == 0) ready.emplace(trace.nodes[i].id, i);
  }
  while (!ready.empty()) {
    const std::size_t i = ready.top().second;
    ready.pop();
    order.nodes.push_back(i);
    for (const std::size_t next : behind[i]) {
      if (--waits[next] == 0) ready.emplace(trace.nodes[next].id, next);
    }
  }
  const auto stuck = std::ranges::find_if(waits, [](std::size_t left) { return left > 0; });
  if (stuck != waits.end() && !with_control) {
    fail(file, trace.nodes[static_cast<std::size_t>(stuck - waits.begin())],
         "waits for itself, through its data dependencies");
  }
  return order;
}

}  // namespace

ChakraOrder order_of(const std::string& file, const ChakraTrace& trace) {
  ChakraOrder order = ordered(file, trace, true);
  // Chakra's own feeder reads data alone.
  if (order.nodes.size() < trace.nodes.size()) order = ordered(file, trace, false);
  return order;
}

}  // namespace foretrace::interchange
