// What each term of the model pays: how much worse blind regions are predicted without it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "models/machine/terms.h"

namespace foretrace {

/// Of the regions that a term moves by 1 %: |error| with and without it, as fractions.
struct TermRent {
  Term term{};
  std::size_t moved = 0, better = 0;  ///< better: predicted nearer with the term
  double mean_with = 0, mean_without = 0;
  double median_with = 0, median_without = 0;
};

struct TermRents {
  std::vector<std::string> rounds;  ///< "round-37 on h200-nvswitch-8"
  std::size_t regions = 0;
  double median = 0, p90 = 0, p95 = 0, mean = 0;  ///< of |error| with every term
  std::vector<TermRent> terms;                    ///< the dearest to lose first
};

/// `programs` holds rounds as `blind.py unpack` writes them, DIR/ROUND/programs.csv; their
/// evaluations below `blind` have what was measured. Predicts every program as often as there are
/// terms, and once more. Throws UsageError naming what is missing. Call before any engine exists in
/// this process.
TermRents term_rents(const std::filesystem::path& blind, const std::filesystem::path& programs);

/// A table in Markdown.
std::string term_rent_markdown(const TermRents& rents);
std::string term_rent_json(const TermRents& rents);

}  // namespace foretrace
