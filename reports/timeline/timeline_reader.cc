#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "reports/timeline/timeline_check.h"
#include "reports/timeline/timeline_json.h"
#include "reports/timeline/timeline_keys.h"
#include "reports/timeline/timeline_sax.h"
#include "scenarios/text/errors.h"
#include "scenarios/text/text_file.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;
using timeline_json::Unreadable;

constexpr std::size_t kLargestTimeline = std::size_t{512} << 20;  // 10 million spans

/// A whole number that `Integer` can hold: nlohmann would cut it off.
template <class Integer>
Integer whole(const Json& value) {
  const bool fits = value.is_number_unsigned()  ? std::in_range<Integer>(value.get<std::uint64_t>())
                    : value.is_number_integer() ? std::in_range<Integer>(value.get<std::int64_t>())
                                                : false;
  if (!fits) throw Unreadable{fmt::format("{} is no number that is possible here", value.dump())};
  return value.get<Integer>();
}
template <class Integer>
Integer whole_or(const Json& row, const char* key, Integer otherwise) {
  const auto found = row.find(key);
  return found == row.end() ? otherwise : whole<Integer>(*found);
}
template <class Integer>
std::vector<Integer> whole_numbers(const Json& row, const char* key) {
  std::vector<Integer> all;
  const auto found = row.find(key);
  if (found == row.end()) return all;
  if (!found->is_array()) throw Unreadable{fmt::format("'{}' is a list of numbers", key)};
  all.reserve(found->size());
  for (const Json& value : *found) all.push_back(whole<Integer>(value));
  return all;
}

template <class Kind, std::size_t N>
Kind kind_of(const std::array<std::string_view, N>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw Unreadable{fmt::format("unknown word '{}'", name)};
  return static_cast<Kind>(found - names.begin());
}

GpuState read_gpu_state(const Json& row) {
  const auto known = [&](const char* key) -> std::optional<std::uint32_t> {
    if (!row.contains(key)) return std::nullopt;
    return whole<std::uint32_t>(row.at(key));
  };
  return {known("sm_clock_mhz"), known("memory_clock_mhz"), known("temperature_celsius"),
          row.value("throttle_reasons", "")};
}

ProcessStart read_start(const Json& row) {
  ProcessStart start{.start = whole<std::uint32_t>(row.at("start")),
                     .date = row.value("date", ""),
                     .label = row.value("label", ""),
                     .environment = row.value("environment", ""),
                     .gpus = {},
                     .environments = row.value("environments", std::vector<std::string>{})};
  for (const Json& gpu : row.value("gpus", Json::array())) {
    start.gpus.push_back(read_gpu_state(gpu));
  }
  return start;
}

Origin read_origin(const Json& document) {
  const Json& scenario = document.at("scenario");
  Origin origin;
  origin.measured = kind_of<int>(std::array<std::string_view, 2>{"predicted", "measured"},
                                 document.at("origin").get<std::string>()) == 1;
  origin.program_hash = scenario.value("program_hash", "");
  if (origin.program_hash.empty()) throw Unreadable{"the program hash is missing"};
  origin.scenario = scenario.at("name");
  origin.file = scenario.at("file");
  origin.machine = document.at("machine");
  origin.producer = document.at("producer");
  origin.versions = document.at("versions");
  origin.clock_error_bound_ns = whole<std::int64_t>(document.at("clock_error_bound_ns"));
  for (const Json& row : document.value("starts", Json::array())) {
    origin.starts.push_back(read_start(row));
  }
  return origin;
}

std::vector<ParameterShare> read_shares(const Json& row) {
  std::vector<ParameterShare> shares;
  for (const Json& one : row.value("decided_by", Json::array())) {
    shares.push_back({one.at("parameter"), one.at("share")});
  }
  return shares;
}

OpRow read_op(const Json& row) {
  return OpRow{.kind = row.at("kind"),
               .variant = row.value("variant", ""),
               .label = row.value("label", ""),
               .line = whole<int>(row.at("line")),
               .size_bytes = whole_or<std::uint64_t>(row, "size_bytes", 0),
               .loops = whole_numbers<std::uint64_t>(row, "loops"),
               .work = row.value("work", ""),
               .sizes = whole_numbers<std::uint64_t>(row, "sizes"),
               .shape = whole_numbers<std::uint64_t>(row, "shape"),
               .ranks = whole_or<std::uint32_t>(row, "ranks", 0),
               .inside = whole_or<std::uint32_t>(row, "inside", 0)};
}

Lane read_lane(const Json& row) {
  return Lane{.kind = kind_of<LaneKind>(keys::kLaneKinds, row.at("kind")),
              .node = whole<std::uint32_t>(row.at("node")),
              .process = whole<std::uint32_t>(row.at("process")),
              .device = whole_or(row, "device", kNoDevice),
              .name = row.at("name")};
}

SpanDetail read_detail(const Json& row) {
  return SpanDetail{
      .kernel = row.value("kernel", ""),
      .algorithm = row.value("algorithm", ""),
      .protocol = row.value("protocol", ""),
      .channels = whole_or<std::uint32_t>(row, "channels", 0),
      .low_factor = row.at("low_factor"),
      .high_factor = row.at("high_factor"),
      .parameters = kind_of<ParameterClass>(keys::kParameterClasses, row.at("parameters")),
      .decided_by = read_shares(row)};
}

RegionSamples read_region(const Json& row) {
  RegionSamples region{.op = whole<std::uint32_t>(row.at("op")),
                       .instance = whole<std::uint64_t>(row.at("instance")),
                       .process = whole<std::uint32_t>(row.at("process")),
                       .name = row.at("name"),
                       .per = whole<std::uint64_t>(row.at("per")),
                       .samples_ns = whole_numbers<std::int64_t>(row, "samples_ns"),
                       .starts = whole_numbers<std::uint32_t>(row, "starts"),
                       .traced_ns = std::nullopt,
                       .low_factor = row.at("low_factor"),
                       .high_factor = row.at("high_factor"),
                       .decided_by = read_shares(row),
                       .learned_by = row.value("learned_by", std::vector<std::string>{})};
  if (row.contains("traced_ns")) region.traced_ns = whole<std::int64_t>(row.at("traced_ns"));
  return region;
}

MemorySample read_memory(const Json& row) {
  constexpr std::size_t kColumns = keys::kMemoryColumns.size();
  if (!row.is_array() || row.size() != kColumns) {
    throw Unreadable{
        fmt::format("a row of 'memory' has {} values for {} columns", row.size(), kColumns)};
  }
  return {whole<std::uint32_t>(row[0]), whole<std::uint32_t>(row[1]), whole<std::int64_t>(row[2]),
          whole<std::int64_t>(row[3]), whole<std::int64_t>(row[4])};
}

template <class T>
std::vector<T> read_all(const Json& rows, T (*read)(const Json&)) {
  std::vector<T> all;
  all.reserve(rows.size());
  for (const Json& row : rows) {
    if (row.contains("id") && row.at("id") != all.size()) {
      throw Unreadable{fmt::format("row {} has the id {}", all.size(), row.at("id").dump())};
    }
    all.push_back(read(row));
  }
  return all;
}

void read_tables(const Json& document, Timeline& timeline) {
  timeline.outcome.kind =
      kind_of<Outcome::Kind>(keys::kOutcomes, document.at("outcome").at("kind"));
  timeline.outcome.explanation = document.at("outcome").at("explanation");
  timeline.ops = read_all(document.at("ops"), read_op);
  timeline.lanes = read_all(document.at("lanes"), read_lane);
  timeline.details = read_all(document.at("details"), read_detail);
  timeline.regions = read_all(document.at("regions"), read_region);
  if (!document.contains("memory")) return;
  if (document.at("memory_columns") != Json(keys::kMemoryColumns)) {
    throw Unreadable{"'memory_columns' are not process, device, at_ns, allocated, reserved"};
  }
  timeline.memory = read_all(document.at("memory"), read_memory);
}

void check_kind(const Json& document) {
  if (!document.is_object() || document.value("kind", "") != "timeline") {
    throw Unreadable{"not a timeline (no \"kind\": \"timeline\")"};
  }
  timeline_json::check_version(document);
}

}  // namespace

Timeline parse_timeline(std::string_view text, const std::string& name) {
  try {
    Timeline timeline;
    const Json document = timeline_json::parse(text, timeline);
    check_kind(document);
    timeline.origin = read_origin(document);
    read_tables(document, timeline);
    if (const auto wrong = what_is_wrong(timeline)) throw Unreadable{*wrong};
    return timeline;
  } catch (const Unreadable& e) {
    throw UsageError{fmt::format("{}: {}", name, e.what())};
  } catch (const Json::exception& e) {
    throw UsageError{fmt::format("{}: not a valid timeline: {}", name, e.what())};
  }
}

Timeline read_timeline(const std::filesystem::path& file) {
  const auto text = read_plain_file(file, kLargestTimeline);
  if (!text) throw UsageError{fmt::format("{}: {}", file.string(), text.error())};
  return parse_timeline(*text, file.string());
}

}  // namespace foretrace
