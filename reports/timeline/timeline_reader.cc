// Rows of numbers (spans, flows) go straight into the timeline while nlohmann's SAX parser runs;
// everything else, which is small, is kept as a document and read at the end.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "reports/timeline/timeline_json.h"
#include "reports/timeline/timeline_keys.h"
#include "scenarios/text/errors.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// Why the content is not a timeline we can read; the caller adds the file's name.
class Unreadable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

constexpr std::size_t kMaxColumns = 32;

/// One row of integers while it is parsed.
struct Row {
  std::array<std::int64_t, kMaxColumns> values;
  std::size_t size = 0;
};

/// Where the columns we know stand in the file's rows; columns we do not know are skipped.
template <std::size_t N>
std::array<std::size_t, N> positions(const Json& columns,
                                     const std::array<std::string_view, N>& known) {
  const auto names = columns.get<std::vector<std::string>>();
  std::array<std::size_t, N> at{};
  for (std::size_t i = 0; i < N; ++i) {
    at[i] = static_cast<std::size_t>(std::ranges::find(names, known[i]) - names.begin());
    if (at[i] == names.size()) throw Unreadable{fmt::format("no column '{}'", known[i])};
  }
  return at;
}

template <class Integer>
Integer narrow(std::int64_t value) {
  const auto result = static_cast<Integer>(value);
  if (static_cast<std::int64_t>(result) != value) {
    throw Unreadable{fmt::format("{} is out of range", value)};
  }
  return result;
}

void check_version(const Json& document) {
  const int version = document.at("schema_version");
  if (version != kTimelineSchemaVersion) {
    throw Unreadable{fmt::format("schema_version {}, but this foretrace reads {}", version,
                                 kTimelineSchemaVersion)};
  }
}

/// nlohmann's SAX events into a document, except for the rows of "spans" and "flows".
class Sax : public nlohmann::json_sax<Json> {
 public:
  explicit Sax(Timeline& timeline) : timeline_{timeline} {}

  Json document;

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override { return integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return integer(static_cast<std::int64_t>(value));  // instances are unsigned; the bits survive
  }
  bool number_float(number_float_t value, const string_t&) override { return scalar(value); }
  bool string(string_t& value) override { return scalar(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override {
    if (table_ == nullptr) return open(Json::array());
    if (++table_depth_ > 2) throw Unreadable{"a row holds a row"};
    row_.size = 0;
    return true;
  }
  bool end_array() override {
    if (table_ == nullptr) return close();
    if (--table_depth_ == 1) {
      (this->*table_)();
    } else {
      table_ = nullptr;
    }
    return true;
  }
  bool key(string_t& name) override {
    if (open_.size() == 1 && name == "spans") {
      begin_table(&Sax::span, "span_columns", keys::kSpanColumns, span_at_);
    } else if (open_.size() == 1 && name == "flows") {
      begin_table(&Sax::flow, "flow_columns", keys::kFlowColumns, flow_at_);
    } else {
      slot_ = &(*open_.back())[name];
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    throw Unreadable{fmt::format("not JSON: {}", e.what())};
  }

 private:
  template <std::size_t N>
  void begin_table(void (Sax::*table)(), const char* columns,
                   const std::array<std::string_view, N>& known, std::array<std::size_t, N>& at) {
    check_version(document);  // before the rows, which another version may write otherwise
    const auto found = document.find(columns);
    if (found == document.end()) throw Unreadable{fmt::format("'{}' is missing", columns)};
    at = positions(*found, known);
    columns_ = found->size();
    if (columns_ > kMaxColumns) throw Unreadable{fmt::format("more than {} columns", kMaxColumns)};
    table_ = table;
    table_depth_ = 0;
  }

  std::int64_t cell(std::size_t column) const { return row_.values[column]; }
  void check_width() const {
    if (row_.size != columns_) {
      throw Unreadable{fmt::format("a row has {} numbers for {} columns", row_.size, columns_)};
    }
  }
  void span() {
    check_width();
    const auto& at = span_at_;
    timeline_.spans.push_back(Span{.op = narrow<std::uint32_t>(cell(at[0])),
                                   .lane = narrow<std::uint32_t>(cell(at[2])),
                                   .instance = static_cast<std::uint64_t>(cell(at[1])),
                                   .begin_ns = cell(at[3]),
                                   .end_ns = cell(at[4]),
                                   .part = narrow<std::uint32_t>(cell(at[5])),
                                   .detail = narrow<std::uint32_t>(cell(at[6]))});
  }
  void flow() {
    check_width();
    const auto kind = narrow<std::uint8_t>(cell(flow_at_[2]));
    if (kind >= keys::kFlowKinds.size()) throw Unreadable{fmt::format("flow kind {}", kind)};
    timeline_.flows.push_back(Flow{.from = narrow<std::uint32_t>(cell(flow_at_[0])),
                                   .to = narrow<std::uint32_t>(cell(flow_at_[1])),
                                   .kind = static_cast<FlowKind>(kind)});
  }

  bool integer(std::int64_t value) {
    if (table_ == nullptr) return scalar(value);
    if (table_depth_ != 2) throw Unreadable{"a number where a row should be"};
    if (row_.size == kMaxColumns) throw Unreadable{"a row is too long"};
    row_.values[row_.size++] = value;
    return true;
  }
  bool scalar(Json value) {
    if (table_ != nullptr) throw Unreadable{"a row may hold integers only"};
    place(std::move(value));
    return true;
  }
  Json* place(Json value) {
    if (open_.empty()) {
      document = std::move(value);
      return &document;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *slot_ = std::move(value);
    return slot_;
  }
  bool open(Json value) {
    if (table_ != nullptr) throw Unreadable{"spans and flows are arrays of rows"};
    if (open_.size() > 16) throw Unreadable{"nested deeper than any timeline"};
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Timeline& timeline_;
  std::vector<Json*> open_;  // parents do not move while a child is open
  Json* slot_ = nullptr;
  void (Sax::*table_)() = nullptr;
  int table_depth_ = 0;
  std::size_t columns_ = 0;
  std::array<std::size_t, keys::kSpanColumns.size()> span_at_{};
  std::array<std::size_t, keys::kFlowColumns.size()> flow_at_{};
  Row row_;
};

template <class Kind, std::size_t N>
Kind kind_of(const std::array<std::string_view, N>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw Unreadable{fmt::format("unknown word '{}'", name)};
  return static_cast<Kind>(found - names.begin());
}

GpuState read_gpu_state(const Json& row) {
  const auto known = [&](const char* key) -> std::optional<std::uint32_t> {
    if (!row.contains(key)) return std::nullopt;
    return row.at(key).get<std::uint32_t>();
  };
  return {known("sm_clock_mhz"), known("memory_clock_mhz"), known("temperature_celsius"),
          row.value("throttle_reasons", "")};
}

ProcessStart read_start(const Json& row) {
  ProcessStart start{.start = row.at("start"),
                     .date = row.value("date", ""),
                     .label = row.value("label", ""),
                     .environment = row.value("environment", ""),
                     .gpus = {}};
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
  origin.clock_error_bound_ns = document.at("clock_error_bound_ns");
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
               .line = row.at("line"),
               .size_bytes = row.value("size_bytes", std::uint64_t{0}),
               .loops = row.value("loops", std::vector<std::uint64_t>{})};
}

Lane read_lane(const Json& row) {
  return Lane{.kind = kind_of<LaneKind>(keys::kLaneKinds, row.at("kind")),
              .node = row.at("node"),
              .process = row.at("process"),
              .device = row.value("device", kNoDevice),
              .name = row.at("name")};
}

SpanDetail read_detail(const Json& row) {
  return SpanDetail{
      .kernel = row.value("kernel", ""),
      .algorithm = row.value("algorithm", ""),
      .protocol = row.value("protocol", ""),
      .channels = row.value("channels", 0U),
      .low_factor = row.at("low_factor"),
      .high_factor = row.at("high_factor"),
      .parameters = kind_of<ParameterClass>(keys::kParameterClasses, row.at("parameters")),
      .decided_by = read_shares(row)};
}

RegionSamples read_region(const Json& row) {
  RegionSamples region{.op = row.at("op"),
                       .instance = row.at("instance"),
                       .process = row.at("process"),
                       .name = row.at("name"),
                       .per = row.at("per"),
                       .samples_ns = row.at("samples_ns"),
                       .starts = row.value("starts", std::vector<std::uint32_t>{}),
                       .traced_ns = std::nullopt,
                       .low_factor = row.at("low_factor"),
                       .high_factor = row.at("high_factor"),
                       .decided_by = read_shares(row),
                       .learned_by = row.value("learned_by", std::vector<std::string>{})};
  if (row.contains("traced_ns")) region.traced_ns = row.at("traced_ns").get<std::int64_t>();
  if (region.per == 0) throw Unreadable{"a region's 'per' is 0"};
  return region;
}

template <class T>
std::vector<T> read_all(const Json& rows, T (*read)(const Json&)) {
  std::vector<T> all;
  all.reserve(rows.size());
  for (const Json& row : rows) all.push_back(read(row));
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
}

void check_indices(const Timeline& t) {
  const auto inside = [](std::size_t index, std::size_t size, const char* what) {
    if (index >= size) throw Unreadable{fmt::format("{} {} of {}", what, index, size)};
  };
  if (t.details.empty()) throw Unreadable{"'details' is empty"};
  for (const Span& span : t.spans) {
    inside(span.op, t.ops.size(), "a span's op is");
    inside(span.lane, t.lanes.size(), "a span's lane is");
    inside(span.detail, t.details.size(), "a span's detail is");
  }
  for (const Flow& flow : t.flows) {
    inside(flow.from, t.spans.size(), "a flow comes from span");
    inside(flow.to, t.spans.size(), "a flow goes to span");
  }
  for (const RegionSamples& region : t.regions) {
    inside(region.op, t.ops.size(), "a region's op is");
    if (!region.starts.empty() && region.starts.size() != region.samples_ns.size()) {
      throw Unreadable{fmt::format("region '{}' has {} starts for {} samples", region.name,
                                   region.starts.size(), region.samples_ns.size())};
    }
  }
}

void check_kind(const Json& document) {
  if (!document.is_object() || document.value("kind", "") != "timeline") {
    throw Unreadable{"not a timeline (no \"kind\": \"timeline\")"};
  }
  check_version(document);
}

}  // namespace

Timeline read_timeline(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    throw UsageError{fmt::format("{}: no such file", file.string())};
  }
  std::ifstream in{file, std::ios::binary};
  if (!in || std::filesystem::is_directory(file, ignored)) {
    throw UsageError{fmt::format("{}: cannot be read", file.string())};
  }
  try {
    Timeline timeline;
    Sax sax{timeline};
    Json::sax_parse(in, &sax);
    check_kind(sax.document);
    timeline.origin = read_origin(sax.document);
    read_tables(sax.document, timeline);
    check_indices(timeline);
    return timeline;
  } catch (const Unreadable& e) {
    throw UsageError{fmt::format("{}: {}", file.string(), e.what())};
  } catch (const Json::exception& e) {
    throw UsageError{fmt::format("{}: not a valid timeline: {}", file.string(), e.what())};
  }
}

}  // namespace foretrace
