// What the terms beyond the core (models/terms.def) make of a kernel's time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/cost/kernel.h"

namespace foretrace {

using KernelTime = std::function<cost::KernelCost(Reading&)>;

/// A term, and the kernel's time alone with it less that without it, in seconds.
struct TermShare {
  Term term{};
  double seconds = 0;
};

/// Those that move the time by a picosecond or more, in the catalogue's order.
std::vector<TermShare> term_shares(const Machine& machine, const KernelTime& time);

/// A heading, and a line for each with its page of evidence; that there is none.
std::string term_text(const std::vector<TermShare>& shares);

}  // namespace foretrace
