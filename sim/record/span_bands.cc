#include "sim/record/span_bands.h"

#include <cmath>

#include "models/trust/trust.h"

namespace foretrace::sim {

std::vector<ParameterShare> deciding(std::span<const Share> shares) {
  constexpr std::size_t kMost = 10;
  constexpr double kDigits = 1000;  // beyond, operations that are alike would differ
  std::vector<ParameterShare> chosen;
  for (const auto& [param, share] : shares) {  // the largest first
    if (std::abs(share) < kDecidingShare || chosen.size() == kMost) break;
    chosen.push_back({std::string{info(param).key}, std::round(share * kDigits) / kDigits});
  }
  return chosen;
}

std::uint32_t SpanBands::add(Timeline& timeline, std::uint32_t op, std::uint32_t detail,
                             std::vector<Share> shares) {
  // Where no parameter stands behind NCCL's time, its own price does.
  double sum = 0;
  for (const auto& [param, share] : shares) {
    // Rates that are shares of it count once.
    if (param != Param::NvlinkBandwidth) sum += std::abs(share);
  }
  const bool is_nccl = !timeline.details[detail].algorithm.empty();
  const double guessed = is_nccl && sum < 1 - kDecidingShare ? 1 - sum : 0;
  const bool is_price = sum < kDecidingShare && is_nccl;
  if (shares.empty() && !is_price) return detail;
  const Band band =
      is_price ? band_of_a_guess()
               : with_guessed(band_of(machine_, shares, {timeline.ops[op].size_bytes}), guessed);
  SpanDetail banded = timeline.details[detail];
  banded.low_factor = band.low;
  banded.high_factor = band.high;
  banded.parameters = band.parameters;
  banded.decided_by = deciding(shares);
  const auto [at, is_new] =
      index_.try_emplace(banded, static_cast<std::uint32_t>(timeline.details.size()));
  if (is_new) {
    timeline.details.push_back(std::move(banded));
    shares_.resize(timeline.details.size());
    shares_.back() = std::move(shares);
    guessed_.resize(timeline.details.size());
    guessed_.back() = is_price ? 1 : guessed;
  }
  return at->second;
}

}  // namespace foretrace::sim
