#include <fmt/format.h>

#include <algorithm>

#include "scenarios/read/reader.h"
#include "scenarios/base/values/quantity.h"

namespace foretrace {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

tl::unexpected<QuantityError> fail(std::string message, std::string hint = {}) {
  return tl::unexpected{QuantityError{std::move(message), std::move(hint), 0}};
}

Quantity variable(std::size_t slot) {
  return {kNumber, {}, {{Expr::Op::Variable, static_cast<std::int64_t>(slot)}}};
}

Quantity of_expr(const Expr& expr) {
  if (expr.is_constant()) return {kNumber, expr.constant(), {}};
  return {kNumber, {}, expr.code()};
}

/// Of a part of a longer loop counted as in the whole; one turn alone is known.
Quantity turn_of(const VariableDomain::Loop& loop, std::size_t slot) {
  if (loop.is_part && loop.times == 1) return {kNumber, loop.first, {}};
  Quantity turn = variable(slot);
  if (loop.first != 0) {
    turn.code.push_back({Expr::Op::Constant, loop.first});
    turn.code.push_back({Expr::Op::Add});
  }
  return turn;
}

Parsed<Quantity> look_up_parameter(Reader& reader, std::string_view name) {
  const auto found = reader.parameters.find(name.substr(1));
  if (found == reader.parameters.end()) {
    std::vector<std::string> known;
    known.reserve(reader.parameters.size());
    for (const auto& [parameter, value] : reader.parameters) known.push_back("$" + parameter);
    return fail(fmt::format("unknown parameter '{}'", name), suggest(name, known));
  }
  found->second.used = true;
  if (found->second.is_broken) return tl::unexpected{QuantityError{{}, {}, 0, true}};
  if (!found->second.quantity) {
    return fail(fmt::format("parameter '{}' is the word '{}', and a number is needed here", name,
                            found->second.text));
  }
  return *found->second.quantity;
}

void report(Reader& reader, const YamlNode& node, const QuantityError& error) {
  if (error.is_told) return reader.problems.count_error();
  reader.problems.error(node, error.message, error.hint, error.offset);
}

NameLookup lookup_in(Reader& reader) {
  return [&reader](std::string_view name) { return look_up(reader, name); };
}

bool is_scalar(Reader& reader, const YamlNode& node) {
  if (node.kind == YamlNode::Kind::Scalar) return true;
  reader.problems.error(node, "a single value is needed here, not a list or map");
  return false;
}

std::string in_unit(std::int64_t value, Unit unit) {
  return fmt::format("{}{}", value, unit == kSize ? " B" : unit == kTime ? " ps" : "");
}

/// "a number from 1 to 8", "a size".
std::string describe(Unit unit, std::int64_t low, std::int64_t high) {
  if (unit != kNumber || high == kNoLimit) return describe(unit);
  return fmt::format("{} from {} to {}", describe(unit), low, high);
}

}  // namespace

std::uint32_t Family::size() const {
  std::uint32_t product = 1;
  for (const std::uint32_t extent : extents) product *= extent;
  return product;
}

Parsed<Quantity> look_up(Reader& reader, std::string_view name) {
  if (name.starts_with('$')) return look_up_parameter(reader, name);
  const auto& loops = reader.domain.loops;
  for (std::size_t slot = loops.size(); slot > 0; --slot) {
    if (loops[slot - 1].name == name) return turn_of(loops[slot - 1], slot);
  }
  if (const auto found = reader.bound.find(name); found != reader.bound.end()) {
    return of_expr(found->second);
  }
  if (name == "process") {
    if (reader.in_operations) return variable(0);
    return fail("'process' is only known inside of threads");
  }
  const auto constant = reader.constants.find(name);
  if (constant != reader.constants.end()) return Quantity{kNumber, constant->second, {}};

  std::vector<std::string> known;
  if (reader.in_operations) known.emplace_back("process");
  for (const auto& [word, value] : reader.constants) known.push_back(word);
  for (const auto& [word, value] : reader.bound) known.push_back(word);
  for (const auto& [parameter, value] : reader.parameters) known.push_back("$" + parameter);
  for (const auto& loop : loops) {
    if (!loop.name.empty()) known.push_back(loop.name);
  }
  return fail(fmt::format("unknown name '{}'", name), suggest(name, known));
}

std::optional<Quantity> read_quantity(Reader& reader, const YamlNode& node,
                                      std::string_view wanted) {
  if (!is_scalar(reader, node)) return std::nullopt;
  auto quantity = parse_quantity(node.text, lookup_in(reader));
  if (!quantity) {
    if (is_name(node.text)) {
      quantity.error().message += fmt::format(", and {} is needed here", wanted);
    }
    report(reader, node, quantity.error());
    return std::nullopt;
  }
  return *std::move(quantity);
}

Expr read_expr(Reader& reader, const YamlNode& node, Unit unit, std::int64_t low, std::int64_t high,
               std::string_view wanted) {
  const auto quantity =
      read_quantity(reader, node, wanted.empty() ? describe(unit, low, high) : wanted);
  if (!quantity) return Expr{low};
  const auto expr = to_expr(*quantity, unit);
  if (!expr) {
    report(reader, node, expr.error());
    return Expr{low};
  }
  if (const auto reason = leaves_range(*expr, low, high, reader.domain)) {
    const std::string range = high == kNoLimit
                                  ? fmt::format("at least {}", in_unit(low, unit))
                                  : fmt::format("between {} and {}", low, in_unit(high, unit));
    reader.problems.error(node, fmt::format("'{}' must be {}: {}", node.text, range, *reason));
    return Expr{low};
  }
  return *expr;
}

std::int64_t read_constant(Reader& reader, const YamlNode& node, Unit unit, std::int64_t low,
                           std::int64_t high, std::string_view wanted) {
  const std::size_t loops = reader.domain.loops.size();
  const Expr expr = read_expr(reader, node, unit, low, high, wanted);
  if (expr.is_constant()) return expr.constant();
  reader.problems.error(
      node, fmt::format("'{}' must be the same {}", node.text,
                        loops > 0 ? "in every iteration and process" : "in every process"));
  return low;
}

bool read_flag(Reader& reader, const YamlNode& node, std::string_view key) {
  return read_choice<bool>(reader, node, fmt::format("value of {}", key),
                           {{"true", true}, {"false", false}});
}

bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}

std::string read_word(Reader& reader, const YamlNode& node, std::string_view what,
                      std::string_view also) {
  if (!is_scalar(reader, node)) return {};
  std::string word = node.text;
  if (word.starts_with('$')) {
    const auto found = reader.parameters.find(std::string_view{word}.substr(1));
    if (found == reader.parameters.end()) {
      report(reader, node, look_up_parameter(reader, word).error());
      return {};
    }
    found->second.used = true;
    if (found->second.is_broken) {
      reader.problems.count_error();
      return {};
    }
    word = found->second.text;
  }
  const bool plain = !word.empty() && std::ranges::all_of(word, [&](char c) {
    return is_letter(c) || is_digit(c) || c == '-' || c == '.' ||
           also.find(c) != std::string_view::npos;
  });
  if (!plain) {
    std::string more;
    for (const char c : also) more += fmt::format("'{}', ", c);
    reader.problems.error(
        node, fmt::format("{} is a word of letters, digits, {}'_', '-' and '.'", what, more));
    return {};
  }
  return word;
}

void report_unknown_word(Reader& reader, const YamlNode& node, std::string_view what,
                         const std::string& word, const std::vector<std::string>& known) {
  if (word.empty()) return;  // reported already
  reader.problems.error(node, fmt::format("unknown {} '{}'", what, word), suggest(word, known));
}

namespace {

std::string choices_of(std::string_view name, const Family& family) {
  std::string text{name};
  for (std::size_t i = 0; i < family.extents.size(); ++i) {
    text += fmt::format("{}0...{}", i == 0 ? "(" : ", ", family.extents[i] - 1);
  }
  return text + (family.extents.empty() ? "" : ")");
}

/// The member's position in the family; reports an index out of range.
std::optional<Expr> flat_index(Reader& reader, const YamlNode& node, std::string_view what,
                               const Family& family, const ParsedReference& reference) {
  Expr flat;
  for (std::size_t i = 0; i < family.extents.size(); ++i) {
    const auto index = to_expr(reference.indices[i], kNumber);
    if (!index) {
      report(reader, node, index.error());
      return std::nullopt;
    }
    const std::int64_t last = std::int64_t{family.extents[i]} - 1;
    if (const auto reason = leaves_range(*index, 0, last, reader.domain)) {
      reader.problems.error(
          node, fmt::format("index out of range in '{}': {}", node.text, *reason),
          fmt::format("there is {} {}", what, choices_of(reference.name, family)));
      return std::nullopt;
    }
    const auto row = combine(Expr::Op::Mul, flat, Expr{family.extents[i]});
    const auto sum = !row || (row->is_constant() && row->constant() == 0)
                         ? std::optional{*index}
                         : combine(Expr::Op::Add, *row, *index);
    if (!sum) return std::nullopt;
    flat = *sum;
  }
  return flat;
}

/// The device's handle on the process's own communicator.
std::optional<Expr> in_own_part(Reader& reader, const YamlNode& node, const Family& family,
                                const Expr& device) {
  if (const auto reason = leaves_range(*family.own, 0, kNoLimit, reader.domain)) {
    reader.problems.error(node, fmt::format("a process is in no part of '{}': its color {}",
                                            node.text, reason->substr(3)));
    return std::nullopt;
  }
  const auto first = combine(Expr::Op::Mul, *family.own, Expr{reader.program.devices});
  return first ? combine(Expr::Op::Add, *first, device) : std::nullopt;
}

}  // namespace

std::optional<FoundReference> read_reference(Reader& reader, const YamlNode& node,
                                             std::string_view what, const Families& families) {
  if (!is_scalar(reader, node)) return std::nullopt;
  const auto reference = parse_reference(node.text, lookup_in(reader));
  if (!reference) {
    report(reader, node, reference.error());
    return std::nullopt;
  }
  const auto found = families.find(reference->name);
  if (found == families.end()) {
    std::vector<std::string> known;
    for (const auto& [name, family] : families) known.push_back(name);
    reader.problems.error(node, fmt::format("unknown {} '{}'", what, reference->name),
                          known.empty() ? fmt::format("the scenario declares no {}", what)
                                        : suggest(reference->name, known));
    return std::nullopt;
  }
  const Family& family = found->second;
  if (family.is_broken) return FoundReference{family.first, {}, true};
  if (reference->indices.empty() && (family.size() == 1 || family.bare_is_first)) {
    if (!family.own) return FoundReference{family.first, {}, family.is_broken};
    auto index = in_own_part(reader, node, family, Expr{0});
    if (!index) return std::nullopt;
    return FoundReference{family.first, *std::move(index), family.is_broken};
  }
  if (reference->indices.size() != family.extents.size()) {
    reader.problems.error(
        node,
        fmt::format("{} '{}' takes {} {}, and this has {}", what, reference->name,
                    family.extents.empty() ? "no" : std::to_string(family.extents.size()),
                    family.extents.size() == 1 ? "index" : "indices", reference->indices.size()),
        fmt::format("there is {} {}", what, choices_of(reference->name, family)));
    return std::nullopt;
  }
  auto index = flat_index(reader, node, what, family, *reference);
  if (!index) return std::nullopt;
  if (family.own) index = in_own_part(reader, node, family, *index);
  if (!index) return std::nullopt;
  return FoundReference{family.first, *std::move(index), family.is_broken};
}

}  // namespace foretrace
