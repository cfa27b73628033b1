#include "sim/cli/kernels/kernel_terms.h"

#include <fmt/format.h>

namespace foretrace {
namespace {

/// A second part, the sum of a product's parts, is the kernel's too.
double seconds_of(const Machine& machine, const KernelTime& time) {
  Reading read{machine};
  const cost::KernelCost cost = time(read);
  return to_seconds(cost.alone + cost.then);
}

}  // namespace

std::vector<TermShare> term_shares(const Machine& machine, const KernelTime& time) {
  const double all = seconds_of(machine, time);
  std::vector<TermShare> shares;
  for (std::size_t i = 0; i < kTermCount; ++i) {
    Machine without = machine;
    without.leave_out(TermSet{}.set(i));
    const double seconds = all - seconds_of(without, time);
    if (seconds != 0) shares.push_back({static_cast<Term>(i), seconds});
  }
  return shares;
}

std::string term_text(const std::vector<TermShare>& shares) {
  if (shares.empty()) return "\nno term beyond the core moves it\n";
  std::string text = "\nterms beyond the core, in the time above\n";
  for (const TermShare& share : shares) {
    const TermInfo& term = info(share.term);
    text += fmt::format("  {:+8.2f} us  {:15} {} (models/evidence/{})\n", share.seconds * 1e6,
                        term.id, term.explains, term.evidence);
  }
  return text;
}

}  // namespace foretrace
