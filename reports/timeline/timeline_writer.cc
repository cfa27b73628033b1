#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <ostream>

#include "reports/timeline/timeline_json.h"
#include "reports/timeline/timeline_keys.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/serving/served_facts_json.h"

namespace foretrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kFlushAt = 1 << 16;

/// A kernel's name may hold any bytes; nlohmann throws on invalid UTF-8 unless told otherwise.
std::string dump(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

template <class Names, class Kind>
std::string_view name_of(const Names& names, Kind kind) {
  return names.at(static_cast<std::size_t>(kind));
}

double finite(double value) {  // nlohmann would write null
  FORETRACE_CHECK(std::isfinite(value), "a timeline holds no infinite factor");
  return value;
}

/// "[1,2,3]". Not through fmt: into a string that is a call for each character.
template <std::integral... Numbers>
void append_row(std::string& out, Numbers... numbers) {
  constexpr std::size_t kLongest = 20;  // digits and a sign
  std::array<char, sizeof...(Numbers) * (1 + kLongest) + 1> row;
  char* at = row.data();
  const auto add = [&](auto number) {
    *at = at == row.data() ? '[' : ',';
    at = std::to_chars(at + 1, at + 1 + kLongest, number).ptr;
  };
  (add(numbers), ...);
  *at++ = ']';
  out.append(row.data(), at);
}

/// Streams one object: scalars and small values through nlohmann, rows of numbers as they are.
class Document {
 public:
  explicit Document(std::ostream& out) : out_{out} { buffer_.reserve(kFlushAt + 4096); }

  void value(std::string_view key, const OrderedJson& value) {
    begin(key);
    buffer_ += dump(value);
    flush_when_full();
  }

  /// One element of `items` per line, each written by `append(buffer, item)`.
  template <class Items, class Append>
  void rows(std::string_view key, const Items& items, const Append& append) {
    begin(key);
    buffer_ += '[';
    bool first = true;
    for (const auto& item : items) {
      buffer_ += first ? "\n" : ",\n";
      first = false;
      append(buffer_, item);
      flush_when_full();
    }
    buffer_ += first ? "]" : "\n]";
  }

  void end() {
    buffer_ += "\n}\n";
    flush();
  }

 private:
  void begin(std::string_view key) {
    buffer_ += empty_ ? "{\n" : ",\n";
    empty_ = false;
    buffer_ += dump(OrderedJson(key));
    buffer_ += ": ";
  }
  void flush_when_full() {
    if (buffer_.size() >= kFlushAt) flush();
  }
  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  std::ostream& out_;
  std::string buffer_;
  bool empty_ = true;
};

OrderedJson to_json(const OpRow& op, std::size_t id) { return op_row_json(op, id); }

OrderedJson to_json(const Lane& lane, std::size_t id) {
  OrderedJson row{{"id", id},
                  {"kind", name_of(keys::kLaneKinds, lane.kind)},
                  {"name", lane.name},
                  {"node", lane.node},
                  {"process", lane.process}};
  if (lane.device != kNoDevice) row["device"] = lane.device;
  return row;
}

OrderedJson to_json(const std::vector<ParameterShare>& shares) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& [parameter, share] : shares) {
    rows.push_back({{"parameter", parameter}, {"share", finite(share)}});
  }
  return rows;
}

OrderedJson to_json(const SpanDetail& detail) {
  OrderedJson row = OrderedJson::object();
  if (!detail.kernel.empty()) row["kernel"] = detail.kernel;
  if (!detail.algorithm.empty()) row["algorithm"] = detail.algorithm;
  if (!detail.protocol.empty()) row["protocol"] = detail.protocol;
  if (detail.channels != 0) row["channels"] = detail.channels;
  row["low_factor"] = finite(detail.low_factor);
  row["high_factor"] = finite(detail.high_factor);
  row["parameters"] = name_of(keys::kParameterClasses, detail.parameters);
  if (!detail.decided_by.empty()) row["decided_by"] = to_json(detail.decided_by);
  return row;
}

OrderedJson to_json(const RegionSamples& region) {
  OrderedJson row{{"name", region.name},
                  {"op", region.op},
                  {"instance", region.instance},
                  {"process", region.process},
                  {"per", region.per},
                  {"samples_ns", region.samples_ns},
                  {"low_factor", finite(region.low_factor)},
                  {"high_factor", finite(region.high_factor)}};
  if (!region.decided_by.empty()) row["decided_by"] = to_json(region.decided_by);
  if (!region.learned_by.empty()) row["learned_by"] = region.learned_by;
  if (!region.starts.empty()) row["starts"] = region.starts;
  if (region.traced_ns) row["traced_ns"] = *region.traced_ns;
  return row;
}

void write_head(Document& document, const Timeline& timeline) {
  const Origin& origin = timeline.origin;
  document.value("schema_version", kTimelineSchemaVersion);
  document.value("kind", "timeline");
  document.value("origin", origin.measured ? "measured" : "predicted");
  document.value(
      "scenario",
      {{"name", origin.scenario}, {"file", origin.file}, {"program_hash", origin.program_hash}});
  document.value("machine", origin.machine);
  document.value("producer", origin.producer);
  document.value("versions", origin.versions);
  document.value("clock_error_bound_ns", origin.clock_error_bound_ns);
  if (origin.launch_ns) document.value("launch_ns", *origin.launch_ns);
  document.value("outcome", {{"kind", name_of(keys::kOutcomes, timeline.outcome.kind)},
                             {"explanation", timeline.outcome.explanation}});
}

OrderedJson to_json(const GpuState& gpu) {
  OrderedJson row = OrderedJson::object();
  if (gpu.sm_clock_mhz) row["sm_clock_mhz"] = *gpu.sm_clock_mhz;
  if (gpu.memory_clock_mhz) row["memory_clock_mhz"] = *gpu.memory_clock_mhz;
  if (gpu.temperature_celsius) row["temperature_celsius"] = *gpu.temperature_celsius;
  if (!gpu.throttle_reasons.empty()) row["throttle_reasons"] = gpu.throttle_reasons;
  return row;
}

OrderedJson to_json(const ProcessStart& start) {
  OrderedJson row{{"start", start.start}, {"date", start.date}};
  if (!start.label.empty()) row["label"] = start.label;
  row["environment"] = start.environment;
  if (!start.environments.empty()) row["environments"] = start.environments;
  row["gpus"] = OrderedJson::array();
  for (const GpuState& gpu : start.gpus) row["gpus"].push_back(to_json(gpu));
  if (!start.launch_ns.empty()) row["launch_ns"] = start.launch_ns;
  return row;
}

/// Small tables whose rows carry their own index.
template <class Items>
void write_numbered(Document& document, std::string_view key, const Items& items) {
  std::size_t id = 0;
  document.rows(key, items,
                [&](std::string& out, const auto& item) { out += dump(to_json(item, id++)); });
}

void write_spans(Document& document, const Timeline& timeline) {
  document.value("span_columns", keys::kSpanColumns);
  document.rows("spans", timeline.spans, [](std::string& out, const Span& s) {
    append_row(out, s.op, s.instance, s.lane, s.begin_ns, s.end_ns, s.part, s.detail);
  });
  document.value("flow_kinds", keys::kFlowKinds);
  document.value("flow_columns", keys::kFlowColumns);
  document.rows("flows", timeline.flows, [](std::string& out, const Flow& f) {
    append_row(out, f.from, f.to, static_cast<int>(f.kind));
  });
}

}  // namespace

OrderedJson op_row_json(const OpRow& op, std::size_t id) {
  OrderedJson row{{"id", id}, {"kind", op.kind}, {"line", op.line}};
  if (!op.variant.empty()) row["variant"] = op.variant;
  if (!op.label.empty()) row["label"] = op.label;
  if (op.size_bytes != 0) row["size_bytes"] = op.size_bytes;
  if (!op.loops.empty()) row["loops"] = op.loops;
  if (!op.work.empty()) row["work"] = op.work;
  if (!op.sizes.empty()) row["sizes"] = op.sizes;
  if (!op.shape.empty()) row["shape"] = op.shape;
  if (op.ranks != 0) row["ranks"] = op.ranks;
  if (op.inside != 0) row["inside"] = op.inside;
  if (op.captured) row["captured"] = true;
  return row;
}

void write_timeline(const Timeline& timeline, std::ostream& out) {
  const auto append = [](std::string& text, const auto& item) { text += dump(to_json(item)); };
  Document document{out};
  write_head(document, timeline);
  if (!timeline.origin.starts.empty()) document.rows("starts", timeline.origin.starts, append);
  write_numbered(document, "ops", timeline.ops);
  write_numbered(document, "lanes", timeline.lanes);
  document.rows("regions", timeline.regions, append);
  document.rows("details", timeline.details, append);
  if (!timeline.memory.empty()) {
    document.value("memory_columns", keys::kMemoryColumns);
    document.rows("memory", timeline.memory, [](std::string& text, const MemorySample& m) {
      append_row(text, m.process, m.device, m.at_ns, m.allocated, m.reserved);
    });
  }
  if (!timeline.memory_peaks.empty()) {
    document.value("memory_peak_columns", keys::kMemoryPeakColumns);
    document.rows("memory_peaks", timeline.memory_peaks,
                  [](std::string& text, const MemoryPeak& m) {
                    append_row(text, m.process, m.device, m.allocated, m.reserved);
                  });
  }
  if (timeline.serving) document.value("serving", to_json(*timeline.serving));
  write_spans(document, timeline);
  document.end();
}

void write_timeline(const Timeline& timeline, const std::filesystem::path& file, Over over) {
  write_file(
      file, [&](std::ostream& out) { write_timeline(timeline, out); }, over);
}

}  // namespace foretrace
