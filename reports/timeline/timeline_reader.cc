#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "reports/timeline/timeline_check.h"
#include "reports/timeline/timeline_json.h"
#include "reports/timeline/timeline_keys.h"
#include "reports/timeline/timeline_sax.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/words.h"
#include "scenarios/serving/served_facts_json.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;
using timeline_json::Unreadable;

constexpr std::size_t kLargestTimeline = std::size_t{512} << 20;  // 10 million spans

/// In one line; what is no UTF-8 in it is replaced.
std::string shown(const Json& value) {
  return shortened(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

const Json& child(const Json& row, const char* key) {
  if (!row.is_object()) throw Unreadable{fmt::format("{} is no object", shown(row))};
  const auto found = row.find(key);
  if (found == row.end()) throw Unreadable{fmt::format("'{}' is missing", key)};
  return *found;
}

/// A whole number that `Integer` can hold: nlohmann would cut it off.
template <class Integer>
Integer whole(const Json& value, const char* key) {
  const bool fits = value.is_number_unsigned()  ? std::in_range<Integer>(value.get<std::uint64_t>())
                    : value.is_number_integer() ? std::in_range<Integer>(value.get<std::int64_t>())
                                                : false;
  if (!fits) {
    throw Unreadable{fmt::format("'{}' is {}: no number that is possible here", key, shown(value))};
  }
  return value.get<Integer>();
}
template <class Integer>
Integer whole_of(const Json& row, const char* key) {
  return whole<Integer>(child(row, key), key);
}
template <class Integer>
Integer whole_or(const Json& row, const char* key, Integer otherwise) {
  return row.contains(key) ? whole_of<Integer>(row, key) : otherwise;
}
template <class Integer>
std::vector<Integer> whole_numbers(const Json& row, const char* key) {
  std::vector<Integer> all;
  const auto found = row.find(key);
  if (found == row.end()) return all;
  if (!found->is_array()) throw Unreadable{fmt::format("'{}' is a list of numbers", key)};
  all.reserve(found->size());
  for (const Json& value : *found) all.push_back(whole<Integer>(value, key));
  return all;
}

/// A text, a real number, a list of texts, ...: `what` says it.
template <class T>
T get(const Json& row, const char* key, const char* what) {
  const Json& value = child(row, key);
  try {
    return value.get<T>();
  } catch (const Json::exception&) {
    throw Unreadable{fmt::format("'{}' is {}, and {} is needed", key, shown(value), what)};
  }
}
std::string text_of(const Json& row, const char* key) {
  return get<std::string>(row, key, "a text");
}
std::string text_or_none(const Json& row, const char* key) {
  return row.contains(key) ? text_of(row, key) : std::string{};
}
double real_of(const Json& row, const char* key) { return get<double>(row, key, "a number"); }
std::vector<std::string> texts_or_none(const Json& row, const char* key) {
  if (!row.contains(key)) return {};
  return get<std::vector<std::string>>(row, key, "a list of texts");
}
/// An array; empty where it is missing.
const Json& rows_or_none(const Json& row, const char* key) {
  static const Json kNone = Json::array();
  if (!row.contains(key)) return kNone;
  const Json& rows = child(row, key);
  if (!rows.is_array()) throw Unreadable{fmt::format("'{}' is a list", key)};
  return rows;
}

template <class Kind, std::size_t N>
Kind kind_of(const std::array<std::string_view, N>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw Unreadable{fmt::format("unknown word '{}'", shortened(name))};
  return static_cast<Kind>(found - names.begin());
}

GpuState read_gpu_state(const Json& row) {
  const auto known = [&](const char* key) -> std::optional<std::uint32_t> {
    if (!row.contains(key)) return std::nullopt;
    return whole_of<std::uint32_t>(row, key);
  };
  return {known("sm_clock_mhz"), known("memory_clock_mhz"), known("temperature_celsius"),
          text_or_none(row, "throttle_reasons")};
}

ProcessStart read_start(const Json& row) {
  ProcessStart start{.start = whole_of<std::uint32_t>(row, "start"),
                     .date = text_or_none(row, "date"),
                     .label = text_or_none(row, "label"),
                     .environment = text_or_none(row, "environment"),
                     .gpus = {},
                     .environments = texts_or_none(row, "environments"),
                     .launch_ns = whole_numbers<std::int64_t>(row, "launch_ns")};
  for (const Json& gpu : rows_or_none(row, "gpus")) {
    start.gpus.push_back(read_gpu_state(gpu));
  }
  return start;
}

Origin read_origin(const Json& document) {
  const Json& scenario = child(document, "scenario");
  Origin origin;
  origin.measured = kind_of<int>(std::array<std::string_view, 2>{"predicted", "measured"},
                                 text_of(document, "origin")) == 1;
  origin.program_hash = text_or_none(scenario, "program_hash");
  if (origin.program_hash.empty()) throw Unreadable{"the program hash is missing"};
  origin.scenario = text_of(scenario, "name");
  origin.file = text_of(scenario, "file");
  origin.machine = text_of(document, "machine");
  origin.producer = text_of(document, "producer");
  origin.versions = get<decltype(origin.versions)>(document, "versions", "an object of texts");
  origin.clock_error_bound_ns = whole_of<std::int64_t>(document, "clock_error_bound_ns");
  if (document.contains("launch_ns")) {
    origin.launch_ns = whole_of<std::int64_t>(document, "launch_ns");
  }
  for (const Json& row : rows_or_none(document, "starts")) {
    origin.starts.push_back(read_start(row));
  }
  return origin;
}

std::vector<ParameterShare> read_shares(const Json& row) {
  std::vector<ParameterShare> shares;
  for (const Json& one : rows_or_none(row, "decided_by")) {
    shares.push_back({text_of(one, "parameter"), real_of(one, "share")});
  }
  return shares;
}

OpRow read_op(const Json& row) {
  return OpRow{.kind = text_of(row, "kind"),
               .variant = text_or_none(row, "variant"),
               .label = text_or_none(row, "label"),
               .line = whole_of<int>(row, "line"),
               .size_bytes = whole_or<std::uint64_t>(row, "size_bytes", 0),
               .loops = whole_numbers<std::uint64_t>(row, "loops"),
               .work = text_or_none(row, "work"),
               .sizes = whole_numbers<std::uint64_t>(row, "sizes"),
               .shape = whole_numbers<std::uint64_t>(row, "shape"),
               .ranks = whole_or<std::uint32_t>(row, "ranks", 0),
               .inside = whole_or<std::uint32_t>(row, "inside", 0),
               .captured = row.contains("captured") && get<bool>(row, "captured", "true or false")};
}

Lane read_lane(const Json& row) {
  return Lane{.kind = kind_of<LaneKind>(keys::kLaneKinds, text_of(row, "kind")),
              .node = whole_of<std::uint32_t>(row, "node"),
              .process = whole_of<std::uint32_t>(row, "process"),
              .device = whole_or(row, "device", kNoDevice),
              .name = text_of(row, "name")};
}

SpanDetail read_detail(const Json& row) {
  return SpanDetail{
      .kernel = text_or_none(row, "kernel"),
      .algorithm = text_or_none(row, "algorithm"),
      .protocol = text_or_none(row, "protocol"),
      .channels = whole_or<std::uint32_t>(row, "channels", 0),
      .low_factor = real_of(row, "low_factor"),
      .high_factor = real_of(row, "high_factor"),
      .parameters = kind_of<ParameterClass>(keys::kParameterClasses, text_of(row, "parameters")),
      .decided_by = read_shares(row)};
}

RegionSamples read_region(const Json& row) {
  RegionSamples region{.op = whole_of<std::uint32_t>(row, "op"),
                       .instance = whole_of<std::uint64_t>(row, "instance"),
                       .process = whole_of<std::uint32_t>(row, "process"),
                       .name = text_of(row, "name"),
                       .per = whole_of<std::uint64_t>(row, "per"),
                       .samples_ns = whole_numbers<std::int64_t>(row, "samples_ns"),
                       .starts = whole_numbers<std::uint32_t>(row, "starts"),
                       .traced_ns = std::nullopt,
                       .low_factor = real_of(row, "low_factor"),
                       .high_factor = real_of(row, "high_factor"),
                       .decided_by = read_shares(row),
                       .learned_by = texts_or_none(row, "learned_by")};
  if (row.contains("traced_ns")) region.traced_ns = whole_of<std::int64_t>(row, "traced_ns");
  return region;
}

/// A row of numbers: `number(T{}, i)` is the one of column i.
template <std::size_t N>
auto numbers_of(const Json& row, const char* table,
                const std::array<std::string_view, N>& columns) {
  if (!row.is_array() || row.size() != N) {
    throw Unreadable{
        fmt::format("a row of '{}' has {} values for {} columns", table, row.size(), N)};
  }
  return [&row, &columns]<class Integer>(Integer, std::size_t column) {
    return whole<Integer>(row[column], columns[column].data());
  };
}

MemorySample read_memory(const Json& row) {
  const auto number = numbers_of(row, "memory", keys::kMemoryColumns);
  return {number(std::uint32_t{}, 0), number(std::uint32_t{}, 1), number(std::int64_t{}, 2),
          number(std::int64_t{}, 3), number(std::int64_t{}, 4)};
}

MemoryPeak read_memory_peak(const Json& row) {
  const auto number = numbers_of(row, "memory_peaks", keys::kMemoryPeakColumns);
  return {number(std::uint32_t{}, 0), number(std::uint32_t{}, 1), number(std::int64_t{}, 2),
          number(std::int64_t{}, 3)};
}

template <class T>
std::vector<T> read_all(const Json& document, const char* key, T (*read)(const Json&)) {
  static_cast<void>(child(document, key));
  const Json& rows = rows_or_none(document, key);
  std::vector<T> all;
  all.reserve(rows.size());
  for (const Json& row : rows) {
    try {
      if (row.is_object() && row.contains("id") && row.at("id") != all.size()) {
        throw Unreadable{fmt::format("its 'id' is {}", shown(row.at("id")))};
      }
      all.push_back(read(row));
    } catch (const Unreadable& e) {
      throw Unreadable{fmt::format("row {} of '{}': {}", all.size(), key, e.what())};
    }
  }
  return all;
}

void read_tables(const Json& document, Timeline& timeline) {
  const Json& outcome = child(document, "outcome");
  timeline.outcome.kind = kind_of<Outcome::Kind>(keys::kOutcomes, text_of(outcome, "kind"));
  timeline.outcome.explanation =
      get<decltype(timeline.outcome.explanation)>(outcome, "explanation", "a list of texts");
  timeline.ops = read_all(document, "ops", read_op);
  timeline.lanes = read_all(document, "lanes", read_lane);
  timeline.details = read_all(document, "details", read_detail);
  timeline.regions = read_all(document, "regions", read_region);
  if (document.contains("memory")) {
    if (child(document, "memory_columns") != Json(keys::kMemoryColumns)) {
      throw Unreadable{"'memory_columns' are not process, device, at_ns, allocated, reserved"};
    }
    timeline.memory = read_all(document, "memory", read_memory);
  }
  if (document.contains("serving")) timeline.serving = serving_facts(document.at("serving"));
  if (!document.contains("memory_peaks")) return;
  if (child(document, "memory_peak_columns") != Json(keys::kMemoryPeakColumns)) {
    throw Unreadable{"'memory_peak_columns' are not process, device, allocated, reserved"};
  }
  timeline.memory_peaks = read_all(document, "memory_peaks", read_memory_peak);
}

void check_kind(const Json& document) {
  if (!document.is_object() || text_or_none(document, "kind") != "timeline") {
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
    throw UsageError{fmt::format("{}: not a valid timeline: {}", name, json_reason(e.what()))};
  }
}

Timeline read_timeline(const std::filesystem::path& file) {
  const auto text = read_plain_file(file, kLargestTimeline);
  if (!text) throw UsageError{fmt::format("{}: {}", file.string(), text.error())};
  return parse_timeline(*text, file.string());
}

}  // namespace foretrace
