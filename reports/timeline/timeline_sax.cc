#include "reports/timeline/timeline_sax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "reports/timeline/timeline_json.h"
#include "reports/timeline/timeline_keys.h"
#include "scenarios/base/text/words.h"

namespace foretrace::timeline_json {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxColumns = 32;
/// A hundred thousand regions with a hundred samples each, three times.
constexpr std::size_t kMostValues = std::size_t{1} << 25;

/// One row of integers while it is parsed.
struct Row {
  std::array<std::int64_t, kMaxColumns> values;
  std::size_t size = 0;
};

/// Where the columns we know stand in the file's rows; columns we do not know are skipped.
template <std::size_t N>
std::array<std::size_t, N> positions(const Json& columns, const char* key,
                                     const std::array<std::string_view, N>& known) {
  const bool is_list = columns.is_array() &&
                       std::ranges::all_of(columns, [](const Json& c) { return c.is_string(); });
  if (!is_list) throw Unreadable{fmt::format("'{}' is a list of names", key)};
  const auto names = columns.get<std::vector<std::string>>();
  std::array<std::size_t, N> at{};
  for (std::size_t i = 0; i < N; ++i) {
    at[i] = static_cast<std::size_t>(std::ranges::find(names, known[i]) - names.begin());
    if (at[i] == names.size()) throw Unreadable{fmt::format("'{}' has no '{}'", key, known[i])};
  }
  return at;
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
    if (table_ == nullptr) return scalar(value);
    return integer(static_cast<std::int64_t>(value));  // instances are unsigned; the bits survive
  }
  bool number_float(number_float_t value, const string_t&) override { return scalar(value); }
  bool string(string_t& value) override { return scalar(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override {
    if (table_ == nullptr) return open(Json::array());
    if (++table_depth_ > 2) wrong_row("it holds a row");
    row_.size = 0;
    return true;
  }
  bool end_array() override {
    if (table_ == nullptr) return close();
    if (--table_depth_ == 1) {
      (this->*table_)();
      ++rows_;
    } else {
      table_ = nullptr;
    }
    return true;
  }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) {
      throw Unreadable{fmt::format("'{}' is there twice in one object", shortened(name))};
    }
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
    throw Unreadable{fmt::format("not JSON: {}", json_reason(e.what()))};
  }

 private:
  template <std::size_t N>
  void begin_table(void (Sax::*table)(), const char* columns,
                   const std::array<std::string_view, N>& known, std::array<std::size_t, N>& at) {
    check_version(document);  // before the rows, which another version may write otherwise
    const auto found = document.find(columns);
    if (found == document.end()) throw Unreadable{fmt::format("'{}' is missing", columns)};
    at = positions(*found, columns, known);
    columns_ = found->size();
    if (columns_ > kMaxColumns) throw Unreadable{fmt::format("more than {} columns", kMaxColumns)};
    table_ = table;
    table_name_ = std::string_view{columns}.starts_with("span") ? "spans" : "flows";
    table_depth_ = 0;
    rows_ = 0;
  }

  [[noreturn]] void wrong_row(const std::string& why) const {
    throw Unreadable{fmt::format("row {} of '{}': {}", rows_, table_name_, why)};
  }
  template <class Integer>
  Integer narrow(std::size_t column, std::string_view key) const {
    const auto result = static_cast<Integer>(cell(column));
    if (static_cast<std::int64_t>(result) != cell(column)) {
      wrong_row(fmt::format("'{}' is {}, which is out of range", key, cell(column)));
    }
    return result;
  }
  std::int64_t cell(std::size_t column) const { return row_.values[column]; }
  void check_width() const {
    if (row_.size != columns_) {
      wrong_row(fmt::format("{} numbers for {} columns", row_.size, columns_));
    }
  }
  void span() {
    check_width();
    const auto& at = span_at_;
    timeline_.spans.push_back(Span{.op = narrow<std::uint32_t>(at[0], keys::kSpanColumns[0]),
                                   .lane = narrow<std::uint32_t>(at[2], keys::kSpanColumns[2]),
                                   .instance = static_cast<std::uint64_t>(cell(at[1])),
                                   .begin_ns = cell(at[3]),
                                   .end_ns = cell(at[4]),
                                   .part = narrow<std::uint32_t>(at[5], keys::kSpanColumns[5]),
                                   .detail = narrow<std::uint32_t>(at[6], keys::kSpanColumns[6])});
  }
  void flow() {
    check_width();
    const auto kind = narrow<std::uint8_t>(flow_at_[2], keys::kFlowColumns[2]);
    if (kind >= keys::kFlowKinds.size()) wrong_row(fmt::format("its kind is {}", kind));
    timeline_.flows.push_back(
        Flow{.from = narrow<std::uint32_t>(flow_at_[0], keys::kFlowColumns[0]),
             .to = narrow<std::uint32_t>(flow_at_[1], keys::kFlowColumns[1]),
             .kind = static_cast<FlowKind>(kind)});
  }

  bool integer(std::int64_t value) {
    if (table_ == nullptr) return scalar(value);
    if (table_depth_ != 2) wrong_row("a number where a row should be");
    if (row_.size == kMaxColumns) wrong_row("too long");
    row_.values[row_.size++] = value;
    return true;
  }
  bool scalar(Json value) {
    if (table_ != nullptr) wrong_row("it may hold integers only");
    place(std::move(value));
    return true;
  }
  Json* place(Json value) {
    if (++values_ > kMostValues) {
      throw Unreadable{fmt::format("more than {} values outside of spans and flows", kMostValues)};
    }
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
    if (table_ != nullptr) wrong_row("it is no list of numbers");
    if (open_.size() > 16) throw Unreadable{"nested deeper than any timeline"};
    open_.push_back(place(std::move(value)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  Timeline& timeline_;
  std::vector<Json*> open_;  // parents do not move while a child is open
  std::vector<std::set<std::string, std::less<>>> keys_;  // of each of these
  Json* slot_ = nullptr;
  void (Sax::*table_)() = nullptr;
  const char* table_name_ = "";
  std::size_t rows_ = 0;  ///< of the table so far
  int table_depth_ = 0;
  std::size_t columns_ = 0;
  std::size_t values_ = 0;
  std::array<std::size_t, keys::kSpanColumns.size()> span_at_{};
  std::array<std::size_t, keys::kFlowColumns.size()> flow_at_{};
  Row row_;
};

}  // namespace

void check_version(const Json& document) {
  const auto version = document.find("schema_version");
  if (version == document.end()) throw Unreadable{"'schema_version' is missing"};
  if (*version != kTimelineSchemaVersion) {
    throw Unreadable{
        fmt::format("schema_version {}, but this foretrace reads {}",
                    shortened(version->dump(-1, ' ', false, Json::error_handler_t::replace)),
                    kTimelineSchemaVersion)};
  }
}

Json parse(std::string_view text, Timeline& timeline) {
  Sax sax{timeline};
  Json::sax_parse(text, &sax);
  return std::move(sax.document);
}

}  // namespace foretrace::timeline_json
