// What the operators of a quantity make of their operands: exact fractions while all is known, else
// code for an Expr. Units are kept; what has none is refused where its sign stands.
#pragma once

#include <string>
#include <vector>

#include "scenarios/base/values/quantity.h"
#include "scenarios/base/values/quantity_lexer.h"

namespace foretrace {

tl::unexpected<QuantityError> fail_at(const Token& at, std::string message, std::string hint = {});

/// left (op) right; `sign` is where and how it was written.
Parsed<Quantity> combine(const Token& sign, Expr::Op op, Quantity left, Parsed<Quantity> right);

/// A number as a condition: 1 where it is not 0 (NotEqual) or where it is (Equal), else 0.
Parsed<Quantity> truth(const Token& at, Quantity value, Expr::Op op = Expr::Op::NotEqual);

/// if(condition, then, otherwise).
Parsed<Quantity> selection(const Token& name, std::vector<Quantity> arguments);

}  // namespace foretrace
