// The bands of predicted spans, and the parameters that decide how long they are: from the very
// cost function that gave a span's duration (models/cost/, models/nccl/), asked again with one
// parameter after the other moved a little (shares_of), once for all spans of an operation.
//
// Waiting and the order of events have no band of their own.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "models/cost/host.h"
#include "models/cost/kernel.h"
#include "models/cost/library.h"
#include "models/machine/reading.h"
#include "models/nccl/time/terms.h"
#include "reports/timeline/timeline.h"

namespace foretrace::sim {

/// A collective that is alone in its group, by its communicator's index.
struct OneCollective {
  std::uint32_t communicator{};
  nccl::Call call;
  friend auto operator<=>(const OneCollective&, const OneCollective&) = default;
};

/// What decides a time: two that are alike take as long and have the same shares. Empty: not known.
using DecidedBy = std::variant<std::monostate, cost::Call, cost::Product, cost::LibraryWork,
                               cost::FrameworkCalls, OneCollective>;

/// What an operation's spans are made of differs, and each has a band of its own.
enum class SpanOf : std::uint8_t {
  Call,       ///< on the host
  FirstCall,  ///< of its kind in the pass, which takes longer
  InPiece,    ///< of an object that shares a piece of memory, which takes less
  Device      ///< what it makes a device do
};

class SpanBands {
 public:
  explicit SpanBands(const Machine& machine) : machine_{machine} {}

  /// The detail of such spans of `op`: `detail`, which names NCCL's choice or is the empty one,
  /// with the band of a time that has `shares()`. The first execution of an operation stands for
  /// all, and one operation for all of its size that are decided by the same.
  template <class Shares>
  std::uint32_t detail_of(Timeline& timeline, std::uint32_t op, SpanOf which, std::uint32_t detail,
                          const DecidedBy& by, const Shares& shares) {
    std::uint32_t& known = slot(timeline, op, which, detail);
    if (known != 0) return known - 1;
    std::uint32_t* alike = &known;
    if (by.index() != 0) alike = &alike_[{by, timeline.ops[op].size_bytes, detail}];
    if (*alike == 0) *alike = 1 + add(timeline, op, detail, shares());
    known = *alike;
    return known - 1;
  }

  /// How much of such a time no parameter of the machine decides, though the model had to take
  /// some number for it: NCCL's own prices, and assumed networks.
  double guessed(std::uint32_t detail) const {
    return detail < guessed_.size() ? guessed_[detail] : 0;
  }
  /// Of a detail that detail_of() gave.
  std::span<const Share> shares(std::uint32_t detail) const {
    return detail < shares_.size() ? std::span<const Share>{shares_[detail]}
                                   : std::span<const Share>{};
  }

 private:
  static constexpr std::size_t kKinds = 4;  ///< of SpanOf
  /// Where the detail is remembered, plus one; 0: not known yet.
  std::uint32_t& slot(const Timeline& timeline, std::uint32_t op, SpanOf which,
                      std::uint32_t detail) {
    const auto kind = static_cast<std::size_t>(which);
    if (detail != 0) return named_[{op * kKinds + kind, detail}];
    if (plain_.empty()) plain_.resize(timeline.ops.size());
    return plain_[op][kind];
  }
  std::uint32_t add(Timeline& timeline, std::uint32_t op, std::uint32_t detail,
                    std::vector<Share> shares);

  const Machine& machine_;
  std::vector<std::array<std::uint32_t, kKinds>> plain_;  ///< by op
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> named_;
  /// By what decides the time, the operation's size in bytes, and the detail without a band.
  std::map<std::tuple<DecidedBy, std::uint64_t, std::uint32_t>, std::uint32_t> alike_;
  std::map<SpanDetail, std::uint32_t> index_;  ///< in Timeline::details
  std::vector<std::vector<Share>> shares_;     ///< by detail
  std::vector<double> guessed_;                ///< the same
};

/// Those of the shares that decide, the ten largest at most, as a timeline has them.
std::vector<ParameterShare> deciding(std::span<const Share> shares);

}  // namespace foretrace::sim
