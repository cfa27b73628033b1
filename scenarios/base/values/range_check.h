// What an Expr can become while the program runs: its range over all iterations and processes, and
// the iteration in which it leaves the range it may have.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/base/values/expr.h"

namespace foretrace {

/// The variables in force at one operation.
struct VariableDomain {
  struct Loop {
    std::string name;  ///< empty when the loop has no index
    std::int64_t times{};
    std::int64_t first{};  ///< what the index is in the first of these turns
    bool is_part = false;  ///< of a longer loop, whose other turns are read apart
  };
  std::vector<std::uint32_t> processes;  ///< ascending
  std::vector<Loop> loops;               ///< outermost first: slots 1, 2, ...

  bool runs_never() const;
};

/// The slots that any of `exprs` reads, ascending.
std::vector<std::size_t> used_slots(const std::vector<const Expr*>& exprs);

/// Calls `visit` with the assignments of the variables that `exprs` read (others are 0) until it
/// returns false. All of them, except that an index whose values repeat (i % 2) is followed through
/// one period only. Gives up after `limit` calls; whether it did not have to.
bool for_each_assignment(const VariableDomain& domain, const std::vector<const Expr*>& exprs,
                         std::uint64_t limit, const std::function<bool(Variables)>& visit);

/// "i = 3, process = 1": the variables in use.
std::string describe_assignment(const VariableDomain& domain, const std::vector<std::size_t>& slots,
                                Variables variables);

/// Empty when `expr` lies in low ... high for every assignment; otherwise the reason, as a part of
/// a sentence: "it is 2 for i = 2".
std::optional<std::string> leaves_range(const Expr& expr, std::int64_t low, std::int64_t high,
                                        const VariableDomain& domain);

/// a (op) b; empty when that would overflow.
std::optional<Expr> combine(Expr::Op op, const Expr& a, const Expr& b);

}  // namespace foretrace
