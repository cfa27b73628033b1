// Integer expressions of a scenario that are only known while the program runs: `x(i % 2)`,
// `peer: (process + 1) % processes`, `size: min(4KiB * 2 ** i, 1MiB)`, `if(process == 0, 8MiB,
// 0B)`. Parameters are already folded in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenarios/base/values/units.h"

namespace foretrace {

/// The variables of an expression: slot 0 is the process, slot k the index of the k-th loop
/// around the operation, counted from the outermost (1-based).
using Variables = std::span<const std::int64_t>;

/// An integer in base units (bytes, picoseconds, or a plain number). Division and remainder round
/// down, as in Python: (process - 1) % processes is the left neighbour, also of process 0.
class Expr {
 public:
  enum class Op : std::uint8_t {
    Constant,
    Variable,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Pow,
    Neg,
    Min,
    Max,
    Less,  ///< this and the next three: 1 or 0
    LessEqual,
    Equal,
    NotEqual,
    Select  ///< of three: the second where the first is not 0, else the third; all are computed
  };
  struct Instruction {
    Op op;
    std::int64_t value{};  ///< Constant: the number. Variable: the slot.
    friend bool operator==(const Instruction&, const Instruction&) = default;
  };
  /// Inclusive. Divisors and exponents are checked when the scenario is read.
  struct Interval {
    std::int64_t low;
    std::int64_t high;
    friend bool operator==(Interval, Interval) = default;
  };

  Expr() = default;
  Expr(std::int64_t constant) : value_{constant} {}  // NOLINT(google-explicit-constructor)

  /// `code` is in postfix order; folded to a constant when it names no variable.
  /// Empty when it would overflow 64 bits or divide by zero while folding, or nests too deeply.
  static std::optional<Expr> from_postfix(std::vector<Instruction> code);

  bool is_constant() const { return code_.empty(); }
  std::int64_t constant() const { return value_; }
  const std::vector<Instruction>& code() const { return code_; }

  std::int64_t eval(Variables variables) const {
    return code_.empty() ? value_ : eval_code(variables);
  }

  /// Empty where eval would overflow 64 bits, divide by zero or raise to a negative power.
  std::optional<std::int64_t> try_eval(Variables variables) const;

  /// Every value lies inside, given each variable's range; empty when 64 bits could overflow, a
  /// divisor could be zero or an exponent negative. Exact for one variable used once.
  std::optional<Interval> bounds(std::span<const Interval> variable_ranges) const;

  /// Canonical text: "((v1) % (2))". Part of the program hash.
  std::string to_string() const;

  friend bool operator==(const Expr&, const Expr&) = default;

 private:
  std::int64_t eval_code(Variables variables) const;

  std::int64_t value_{};
  std::vector<Instruction> code_;
};

/// An Expr whose value is a size.
struct BytesExpr {
  Expr expr;
  Bytes eval(Variables v) const { return {static_cast<std::uint64_t>(expr.eval(v))}; }
  friend bool operator==(const BytesExpr&, const BytesExpr&) = default;
};

/// An Expr whose value is a time: at most kLongestTime.
struct DurationExpr {
  Expr expr;  ///< picoseconds
  Duration eval(Variables v) const { return std::min(Duration{expr.eval(v)}, kLongestTime); }
  friend bool operator==(const DurationExpr&, const DurationExpr&) = default;
};

}  // namespace foretrace
