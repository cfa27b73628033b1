// What host threads ask of an order graph: entries of streams, with NCCL's kernels and what those do
// together.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scenarios/check/happens_before.h"

namespace foretrace {

/// What kernels of several ranks do together. None receives before the senders have begun; but who
/// only sends may be over before a receiver begins: the data waits in NCCL's buffers.
struct OrderTransfer {
  std::string what;  ///< with its size and root: what all ranks must agree on
  std::size_t missing{};
  bool is_broken = false;  ///< a rank called something else in this place: never ends
  /// The one rank that all data is from, or goes to. Neither: every rank hears from every other.
  std::optional<std::uint32_t> source, sink;
  OrderClock clock;            ///< what has ended when all have begun
  OrderClock source_clock;     ///< what has ended when the source has begun
  bool is_held = false;        ///< NCCL's buffers hold what is sent: who only sends goes on
  std::uint32_t ranks = 0;     ///< of the communicator, which all take part; 0: of a pair
  std::uint32_t from{}, to{};  ///< the pair's
  struct Party {
    std::uint32_t entry, rank;
    std::uint32_t kernel;  ///< of the entry
    bool has_begun = false, has_met = false;
  };
  std::vector<Party> parties;
  std::size_t next = 0;                ///< of the parties: who began last is before it
  std::vector<std::size_t> waiting{};  ///< have begun, and have not met
  bool source_has_begun = false;
};
struct OrderPart {
  std::shared_ptr<OrderTransfer> transfer;
  std::uint32_t rank{};
};
/// One of NCCL's kernels: all of its parts begin at once.
struct OrderKernel {
  std::vector<OrderPart> parts{};
  std::vector<std::uint32_t> after{};  ///< kernels of the same graph that end before it begins
};

/// Who gives a signal or records an event over a whole run: with only one, an order is certain.
struct OrderFacts {
  struct Place {
    std::uint32_t thread;
    std::optional<std::uint32_t> stream;  ///< none: the host thread itself
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  std::map<std::uint32_t, std::set<Place>> givers;     ///< by semaphore
  std::map<std::uint32_t, std::set<Place>> recorders;  ///< by event of a process
};

/// What the implicit synchronization with the legacy default stream makes of an entry.
enum class OrderRole : std::uint8_t {
  Work,    ///< kernels, copies, host functions, graphs: it keeps them apart
  Record,  ///< completes after it in the legacy stream; itself keeps nothing apart
  Marker   ///< a wait, malloc_async, free_async: CUDA may queue nothing at all
};

/// What a host thread asks of the graph: an entry for a stream.
struct OrderEntry {
  OrderRole role = OrderRole::Work;
  std::vector<ExecutedOp> work{};
  std::vector<std::uint32_t> after{};           ///< beyond what the stream itself demands
  std::vector<std::uint32_t> after_inside{};    ///< a graph's kernels are, the graph itself is not
  std::vector<std::uint32_t> takes{}, gives{};  ///< semaphores
  std::vector<OrderKernel> kernels{};           ///< NCCL's; of a graph there may be several
};

}  // namespace foretrace
