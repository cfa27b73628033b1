#include "scenarios/base/values/quantity.h"

#include <fmt/format.h>

namespace foretrace {
namespace {

std::string missing_unit_hint(const Quantity& quantity, Unit unit) {
  if (!quantity.is_constant() || quantity.unit != kNumber) return {};
  const std::string number = quantity.constant.text();
  if (unit == kSize) return fmt::format("did you mean {0}B, {0}KiB or {0}MiB?", number);
  if (unit == kTime) return fmt::format("did you mean {0}us, {0}ms or {0}ns?", number);
  if (unit == kRate) return fmt::format("did you mean {} GB/s?", number);
  return {};
}

}  // namespace

std::string describe(Unit unit) {
  if (unit == kNumber) return "a plain number";
  if (unit == kSize) return "a size";
  if (unit == kTime) return "a time";
  if (unit == kRate) return "a rate";
  return fmt::format("bytes^{} time^{}", unit.bytes, unit.time);
}

Parsed<Quantity> parse_constant(std::string_view text) {
  return parse_quantity(text, [](std::string_view name) -> Parsed<Quantity> {
    return tl::unexpected{QuantityError{fmt::format("'{}' means nothing here", name), {}, 0}};
  });
}

Parsed<Expr> to_expr(const Quantity& quantity, Unit unit) {
  const auto fail = [](std::string message, std::string hint = {}) {
    return tl::unexpected{QuantityError{std::move(message), std::move(hint), 0}};
  };
  if (quantity.unit != unit) {
    const bool unitless = quantity.unit == kNumber;
    return fail(fmt::format("{} is needed here, and this is {}", describe(unit),
                            unitless ? "a number without a unit" : describe(quantity.unit)),
                missing_unit_hint(quantity, unit));
  }
  if (!quantity.is_constant()) {
    auto expr = Expr::from_postfix(quantity.code);
    if (!expr) return fail("the expression is too long");
    return *std::move(expr);
  }
  if (unit != kTime && !quantity.constant.is_whole()) {
    return fail(fmt::format("{} is needed here, and this is {}",
                            unit == kSize ? "a whole number of bytes" : "a whole number",
                            quantity.constant.text()));
  }
  const auto value = quantity.constant.rounded();
  if (!value) {
    const char* most = unit == kSize   ? "a size can be at most 2^63 - 1 bytes"
                       : unit == kTime ? "a time can be at most 106 days"
                                       : "a number can be at most 2^63 - 1";
    return fail(fmt::format("out of range: {}", most));
  }
  return Expr{*value};
}

std::optional<double> to_double(const Quantity& quantity) {
  if (!quantity.is_constant()) return std::nullopt;
  return quantity.constant.to_double();
}

}  // namespace foretrace
