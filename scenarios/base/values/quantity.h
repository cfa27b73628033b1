// "64MiB", "$n * $n * 4B", "x(i % 2)": the small expression language inside scenario values.
//
// Every quantity has a unit, and arithmetic checks it: size + time is an error, size / size is a
// plain number. Constants are exact (rational) until they are asked for as a number; what depends
// on a loop index or on the process becomes an Expr, integer in base units.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/base/values/expr.h"
#include "scenarios/base/values/rational.h"
#include "scenarios/base/values/unit.h"

namespace foretrace {

/// A value in base units: bytes, picoseconds, bytes per picosecond, plain.
struct Quantity {
  Unit unit;
  Rational constant;                    ///< when `code` is empty
  std::vector<Expr::Instruction> code;  ///< postfix, when it depends on a variable

  bool is_constant() const { return code.empty(); }
};

/// What the names of an expression mean: `name` comes with its '$' when it is a parameter.
/// The error's offset is set by the parser.
using NameLookup = std::function<Parsed<Quantity>(std::string_view name)>;

/// The whole `text` is one expression.
Parsed<Quantity> parse_quantity(std::string_view text, const NameLookup& lookup);

/// The whole `text` is one expression in which no name means anything: its value is a constant.
Parsed<Quantity> parse_constant(std::string_view text);

/// `x`, `x(i % 2)`, `x(d, k)`: a named object and its indices, plain numbers.
struct ParsedReference {
  std::string name;
  std::vector<Quantity> indices;
};
Parsed<ParsedReference> parse_reference(std::string_view text, const NameLookup& lookup);

/// The quantity as an Expr in base units of `unit`; times are rounded to the picosecond, anything
/// else must be whole. The error says what was expected instead.
Parsed<Expr> to_expr(const Quantity& quantity, Unit unit);

/// The constant as a real number in base units; empty when it is not constant.
std::optional<double> to_double(const Quantity& quantity);

}  // namespace foretrace
