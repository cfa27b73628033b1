#include "hw/products/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace::hw {
namespace {

constexpr std::array<std::pair<ProductType, const char*>, 5> kTypes{{
    {ProductType::Float16, "float16"},
    {ProductType::BFloat16, "bfloat16"},
    {ProductType::Float32, "float32"},
    {ProductType::Tf32, "tf32"},
    {ProductType::Float64, "float64"},
}};
constexpr std::int64_t kLargestDimension = 1 << 20;  // cuBLAS takes int; this leaves room for m * k
constexpr double kLargestOperand = 64e9;             // bytes: the largest that a GPU's memory holds

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const auto& [type, name] : kTypes) names.emplace_back(name);
  return names;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

/// Reads one line after the other and collects what is wrong.
class ShapeReader {
 public:
  explicit ShapeReader(std::string name) : name_{std::move(name)} {}

  void line(std::string_view text, int number) {
    number_ = number;
    text_ = text;
    const auto shown = trimmed(text);
    if (shown.empty() || shown.front() == '#') return;
    if (columns_.empty()) {
      header(text);
    } else {
      row(text);
    }
  }

  void end() {
    number_ = 0;
    if (columns_.empty()) wrong(0, "no line of column names", fmt::format("{}", kShapeColumns));
  }

  const Diagnostics& diagnostics() const { return diagnostics_; }
  std::vector<Shape>&& shapes() { return std::move(shapes_); }

 private:
  void wrong(std::size_t column, const std::string& message, const std::string& hint = "") {
    diagnostics_.push_back(
        {{name_, number_, static_cast<int>(column) + 1}, message, hint, Severity::Error});
  }

  std::size_t column_of(std::string_view cell) const {
    return static_cast<std::size_t>(cell.data() - text_.data());
  }

  void header(std::string_view text) {
    static const std::vector<std::string> kKnown{"m",      "n",      "k",      "type",
                                                 "c_type", "transa", "transb", "batch",
                                                 "beta",   "family", "part",   "note"};
    for (const auto cell : csv_cells(text)) {
      const std::string column{trimmed(cell)};
      if (std::find(kKnown.begin(), kKnown.end(), column) == kKnown.end()) {
        wrong(column_of(cell), fmt::format("unknown column '{}'", column), suggest(column, kKnown));
      } else if (std::find(columns_.begin(), columns_.end(), column) != columns_.end()) {
        wrong(column_of(cell), fmt::format("column '{}' is there twice", column));
      }
      columns_.push_back(column);
    }
    for (const char* needed : {"m", "n", "k", "type", "transa", "transb"}) {
      if (std::find(columns_.begin(), columns_.end(), needed) == columns_.end()) {
        wrong(0, fmt::format("column '{}' is missing", needed));
      }
    }
  }

  void row(std::string_view text) {
    const auto cells = csv_cells(text);
    if (cells.size() != columns_.size()) {
      wrong(cells.size() > columns_.size() ? column_of(cells[columns_.size()]) : text.size(),
            fmt::format("{} cells, but {} columns", cells.size(), columns_.size()));
      return;
    }
    const std::size_t mistakes = diagnostics_.size();
    Shape shape;
    std::optional<ProductType> c_type;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string& column = columns_[i];
      const std::string_view cell = cells[i];
      if (column == "m") shape.m = number(cell, kLargestDimension);
      if (column == "n") shape.n = number(cell, kLargestDimension);
      if (column == "k") shape.k = number(cell, kLargestDimension);
      if (column == "batch") shape.batch = number(cell, kLargestDimension);
      if (column == "type") shape.type = type(cell);
      if (column == "c_type" && !trimmed(cell).empty()) c_type = type(cell);
      if (column == "transa") shape.transa = transposed(cell);
      if (column == "transb") shape.transb = transposed(cell);
      if (column == "beta") shape.beta = beta(cell);
      if (column == "family") shape.family = trimmed(cell);
      if (column == "part") shape.part = part(cell);
      if (column == "note") shape.note = trimmed(cell);
    }
    shape.c_type = c_type.value_or(shape.type);
    if (diagnostics_.size() != mistakes) return;
    check(shape);
  }

  void check(const Shape& shape) {
    const bool is_half = element_bytes(shape.type) == 2;
    if (shape.c_type != shape.type && !(is_half && shape.c_type == ProductType::Float32)) {
      return wrong(
          0, fmt::format("c_type {} with type {}", name_of(shape.c_type), name_of(shape.type)),
          "float16 and bfloat16 may have c_type float32; else it is the type");
    }
    const auto largest = std::max({shape.a_bytes(), shape.b_bytes(), shape.c_bytes()});
    if (static_cast<double>(largest) > kLargestOperand) {
      return wrong(0, fmt::format("an operand of {:.1f} GB; at most {:.0f}",
                                  static_cast<double>(largest) / 1e9, kLargestOperand / 1e9));
    }
    if (!keys_.insert(key_of(shape)).second) {
      return wrong(0, "this product is there twice: " + key_of(shape));
    }
    shapes_.push_back(shape);
  }

  std::int64_t number(std::string_view cell, std::int64_t largest) {
    const auto text = trimmed(cell);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > largest) {
      wrong(column_of(cell), fmt::format("'{}' is not a number from 1 to {}", text, largest));
    }
    return value;
  }

  ProductType type(std::string_view cell) {
    const auto text = trimmed(cell);
    for (const auto& [type, name] : kTypes) {
      if (text == name) return type;
    }
    wrong(column_of(cell), fmt::format("unknown type '{}'", text), suggest(text, type_names()));
    return {};
  }

  bool transposed(std::string_view cell) {
    const auto text = trimmed(cell);
    if (text != "N" && text != "T") {
      wrong(column_of(cell),
            fmt::format("'{}' is neither N (as it lies) nor T (transposed)", text));
    }
    return text == "T";
  }

  int beta(std::string_view cell) {
    const auto text = trimmed(cell);
    if (text != "0" && text != "1") {
      wrong(column_of(cell), fmt::format("'{}' is neither 0 nor 1 (add to c)", text));
    }
    return text == "1" ? 1 : 0;
  }

  std::string part(std::string_view cell) {
    const auto text = trimmed(cell);
    if (text != "fit" && text != "judge") {
      wrong(column_of(cell), fmt::format("'{}' is neither fit nor judge (held out)", text));
    }
    return std::string{text};
  }

  std::string name_;
  std::vector<std::string> columns_;
  std::set<std::string> keys_;
  std::vector<Shape> shapes_;
  Diagnostics diagnostics_;
  std::string_view text_;
  int number_ = 0;
};

std::size_t bytes_of(std::int64_t rows, std::int64_t columns, std::int64_t batch,
                     ProductType type) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) *
         static_cast<std::size_t>(batch) * element_bytes(type);
}

}  // namespace

std::string name_of(ProductType type) { return kTypes.at(static_cast<std::size_t>(type)).second; }

std::size_t element_bytes(ProductType type) {
  switch (type) {
    case ProductType::Float16:
    case ProductType::BFloat16:
      return 2;
    case ProductType::Float32:
    case ProductType::Tf32:
      return 4;
    case ProductType::Float64:
      return 8;
  }
  return 8;
}

double Shape::flop() const {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
         static_cast<double>(batch);
}
std::size_t Shape::a_bytes() const { return bytes_of(m, k, batch, type); }
std::size_t Shape::b_bytes() const { return bytes_of(k, n, batch, type); }
std::size_t Shape::c_bytes() const { return bytes_of(m, n, batch, c_type); }

std::string key_of(const Shape& shape) {
  return fmt::format("{},{},{},{},{},{},{},{},{}", shape.m, shape.n, shape.k, name_of(shape.type),
                     name_of(shape.c_type), shape.transa ? 'T' : 'N', shape.transb ? 'T' : 'N',
                     shape.batch, shape.beta);
}

std::vector<Shape> read_shapes(const std::filesystem::path& file) {
  return parse_shapes(read_text_file(file), file.string());
}

std::vector<Shape> parse_shapes(std::string_view text, const std::string& name) {
  ShapeReader reader{name};
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const auto end = rest.find('\n');
    reader.line(rest.substr(0, end), number);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
  reader.end();
  if (!reader.diagnostics().empty()) throw UsageError{render(reader.diagnostics(), text)};
  return reader.shapes();
}

Shard parse_shard(const std::string& text) {
  Shard shard;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, shard.index);
  if (first.ec == std::errc{} && first.ptr != end && *first.ptr == '/') {
    const auto second = std::from_chars(first.ptr + 1, end, shard.count);
    if (second.ec == std::errc{} && second.ptr == end && shard.index >= 1 &&
        shard.index <= shard.count) {
      return shard;
    }
  }
  throw UsageError{fmt::format("--shard {} is not i/n with 1 <= i <= n, as in 1/2", text)};
}

std::vector<Shape> shard_of(const std::vector<Shape>& shapes, Shard shard) {
  std::vector<Shape> mine;
  for (std::size_t i = shard.index - 1; i < shapes.size(); i += shard.count) {
    mine.push_back(shapes[i]);
  }
  return mine;
}

std::vector<std::string_view> csv_cells(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string_view> cells;
  while (true) {
    const auto comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace foretrace::hw
