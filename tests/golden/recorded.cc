#include "tests/golden/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "reports/timeline/timeline_keys.h"

namespace foretrace::test {
namespace {

std::string lane_name(const Lane& lane) {
  std::string name = fmt::format("process {} ", lane.process);
  if (lane.device != kNoDevice) name += fmt::format("device {} ", lane.device);
  return name + lane.name;
}

std::string op_name(const Timeline& timeline, std::uint32_t id) {
  const OpRow& op = timeline.ops.at(id);
  return fmt::format("{:03} {}{}{}", id, op.kind, op.label.empty() ? "" : " ", op.label);
}

std::string region_name(const RegionSamples& region) {
  const std::string instance = region.instance == 0 ? "" : fmt::format(" [{}]", region.instance);
  const std::string per = region.per == 1 ? "" : fmt::format(" per {}", region.per);
  return fmt::format("region {}{}{} process {}", region.name, instance, per, region.process);
}

std::string detail_text(const SpanDetail& detail) {
  std::string text;
  if (!detail.algorithm.empty()) {
    text = fmt::format("{} {} {} channels ", detail.algorithm, detail.protocol, detail.channels);
  }
  return text +
         std::string{keys::kParameterClasses.at(static_cast<std::size_t>(detail.parameters))};
}

void add_band(Recorded& recorded, const std::string& key, Recorded::Band band) {
  std::vector<Recorded::Band>& bands = recorded.bands[key];
  const auto place = std::ranges::lower_bound(bands, band);
  if (place == bands.end() || *place != band) bands.insert(place, band);
}

}  // namespace

Recorded record(const Timeline& timeline) {
  Recorded recorded;
  recorded.outcome = keys::kOutcomes.at(static_cast<std::size_t>(timeline.outcome.kind));
  for (const RegionSamples& region : timeline.regions) {
    const std::string name = region_name(region);
    recorded.region_ns[name] = region.samples_ns.at(0);
    add_band(recorded, name, {region.low_factor, region.high_factor});
  }
  std::set<std::tuple<std::uint32_t, bool, std::uint16_t>> seen;
  for (const Span& span : timeline.spans) {
    recorded.lanes[lane_name(timeline.lanes.at(span.lane))].push_back(
        {op_name(timeline, span.op), span.instance, std::max<std::uint64_t>(span.part, 1),
         span.begin_ns, span.end_ns});
    if (span.detail == 0) continue;  // a wait: as long as what it waits for
    if (!seen.emplace(span.op, span.part == 0, span.detail).second) continue;
    const SpanDetail& detail = timeline.details.at(span.detail);
    add_band(recorded,
             fmt::format("op {} {} {}", op_name(timeline, span.op),
                         span.part == 0 ? "host" : "device", detail_text(detail)),
             {detail.low_factor, detail.high_factor});
  }
  for (auto& [name, spans] : recorded.lanes) {
    std::ranges::sort(spans, {}, [](const RecordedSpan& span) {
      return std::tie(span.begin_ns, span.end_ns, span.op, span.instance, span.part);
    });
  }
  return recorded;
}

}  // namespace foretrace::test
