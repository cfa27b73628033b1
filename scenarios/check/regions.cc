// Regions that end while all the work that they issue, or all since their last wait, may still run:
// of that they time issuing, which is seldom meant.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "scenarios/check/check.h"

namespace foretrace {
namespace {

/// Names that say that calls are timed.
constexpr std::array kOfIssuing{"issue", "launch", "calls"};

/// A wait for the first work that it issues.
std::string wait_for(const Program& program, const HappensBefore& order, std::uint32_t node) {
  const auto stream = order.lanes[order.nodes[node].lane].stream;
  const Stream& first = program.streams[*stream];
  const bool is_declared =
      first.name.find('.') == std::string::npos;  // a process group's own is "world.stream(0)"
  const bool is_named =
      is_declared && (first.kind == StreamKind::Blocking || first.kind == StreamKind::NonBlocking);
  if (is_named) return fmt::format("stream_synchronize: {{stream: {}}}", first.name);
  return first.device == 0 ? "device_synchronize: {}"
                           : fmt::format("device_synchronize: {{device: {}}}", first.device);
}

std::string what_it_times(const HappensBefore& order, const UnwaitedRegion& one) {
  const std::string& name = std::get<Region>(one.region->kind).name;
  if (one.is_behind_wait) {
    return fmt::format(
        "region '{}' ends while the work that it issued behind its last wait, from line {} on, may "
        "still run: of that it times issuing only",
        name, order.nodes[one.node].call.op->line);
  }
  return fmt::format(
      "region '{}' ends while the work that it issued may still run: it times issuing only", name);
}

}  // namespace

bool is_of_issuing(const Region& region) {
  return region.issue_only || std::ranges::any_of(kOfIssuing, [&](const char* begin) {
           return region.name.starts_with(begin);
         });
}

void check_regions(const Program& program, const HappensBefore& order, Problems& problems) {
  std::vector<UnwaitedRegion> found = order.unwaited;
  std::ranges::sort(found, {}, [](const UnwaitedRegion& one) {
    return std::pair{one.region->id.value, one.node};
  });
  std::set<std::uint32_t> said;
  for (const UnwaitedRegion& one : found) {
    const Region& region = std::get<Region>(one.region->kind);
    if (is_of_issuing(region) || !said.insert(one.region->id.value).second) continue;
    problems.add(
        one.region->line, one.region->column, Severity::Warning, what_it_times(order, one),
        fmt::format("add {} before its end; if issuing is what you time, add issue_only: true",
                    wait_for(program, order, one.node)),
        "regions that time issuing");
  }
}

}  // namespace foretrace
