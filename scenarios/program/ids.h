// Indices that cannot be mixed up, and references to the named objects of a scenario.
#pragma once

#include <compare>
#include <cstdint>

#include "scenarios/base/values/expr.h"

namespace foretrace {

/// An index that cannot be mixed up with another kind of index.
template <class Tag>
struct Id {
  std::uint32_t value{};
  friend constexpr auto operator<=>(Id, Id) = default;
};

/// Stable across runs and executors: the key that joins measured and predicted spans.
using OpId = Id<struct OpTag>;
using StreamId = Id<struct StreamTag>;
using EventId = Id<struct EventTag>;
using BufferId = Id<struct BufferTag>;
using CommId = Id<struct CommTag>;
using SignalId = Id<struct SignalTag>;
using BarrierId = Id<struct BarrierTag>;
using GraphId = Id<struct GraphTag>;

/// One member of a named family: `copied(i % 2)` is the index into `copied(0) ... copied(1)`.
/// The members of a family have consecutive ids, so resolving is one addition.
template <class Tag>
struct Ref {
  Id<Tag> first;
  Expr index;  ///< 0 ... count-1; checked for every iteration when the scenario is read
  Id<Tag> resolve(Variables v) const {
    return {first.value + static_cast<std::uint32_t>(index.eval(v))};
  }
  friend bool operator==(const Ref&, const Ref&) = default;
};
using StreamRef = Ref<StreamTag>;
using EventRef = Ref<EventTag>;
using BufferRef = Ref<BufferTag>;
using CommRef = Ref<CommTag>;
using SignalRef = Ref<SignalTag>;
using GraphRef = Ref<GraphTag>;

}  // namespace foretrace
