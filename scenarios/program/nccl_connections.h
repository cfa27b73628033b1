// Who waits for whom while NCCL connects pairs of ranks, at their first send and receive: as
// ncclTransportP2pSetup does it (nccl src/transport.cc), whatever the times are.
//
// A call, or all of a group's calls of one rank, are set up together, one distance between ranks
// after the other: what the two ends tell each other, and then once more that all is done. So a
// rank's call returns only when its peers have come for the same pair and direction, and they have
// in turn been answered by all their peers that are not further away.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace foretrace {

class NcclConnections {
 public:
  /// From the rank that sends to the one that receives.
  struct Pair {
    std::uint32_t from, to;
    friend auto operator<=>(const Pair&, const Pair&) = default;
  };
  /// `serve_both`: two ranks that are connected one way are the other way, too. In NCCL's source
  /// each direction is by itself; nobody has measured a program that this decides.
  explicit NcclConnections(std::uint32_t ranks, bool serve_both = false)
      : ranks_{ranks}, serve_both_{serve_both} {}

  /// `rank` is here for `pairs`, of each of which it is one end. The number of what it sets up;
  /// empty when all of them are connected, as a rank always is with itself.
  std::optional<std::uint32_t> connect(std::uint32_t rank, const std::vector<Pair>& pairs);
  bool is_done(std::uint32_t setup) const { return setups_[setup].phase == kPhases; }
  /// Those that are done and have not been told yet.
  std::vector<std::uint32_t> take_done() { return std::exchange(done_, {}); }

  /// What holds up a set-up that is not done: of `pair`, the end `rank` has not come; or it has,
  /// and waits itself for another of its own set-up's pairs.
  struct Missing {
    Pair pair;
    std::uint32_t rank;
    bool has_come;
  };
  Missing missing(std::uint32_t setup) const;
  /// The same at the end of the way, where a rank has not come; empty when they wait in a circle.
  std::optional<Missing> first_missing(std::uint32_t setup) const;
  /// Ends of pairs that were looked at so far: what all this costs.
  std::uint64_t steps_taken() const { return steps_taken_; }

 private:
  static constexpr std::uint32_t kPhases = 2;  ///< they tell each other, and that all is done
  struct Step {
    std::uint32_t distance;  ///< from the sender on, around all ranks
    Pair pair;
    friend auto operator<=>(const Step&, const Step&) = default;
  };
  struct Setup {
    std::uint32_t rank{};
    std::vector<Step> steps{};  ///< the nearest first
    std::uint32_t phase = 0;
    std::size_t at = 0;
    std::vector<std::uint32_t> waiting{};  ///< set-ups that wait until this one has got as far
  };
  struct Ends {
    std::optional<std::uint32_t> sender, receiver;  ///< set-ups
    std::optional<std::uint32_t> waiting;           ///< the one that was here first
  };
  std::optional<std::uint32_t> other_end(const Setup& setup) const;
  static bool has_reached(const Setup& setup, std::uint32_t phase, std::uint32_t distance);
  bool advance(std::uint32_t number);
  void advance_all(std::uint32_t first);

  std::uint32_t ranks_;
  bool serve_both_;
  std::vector<Setup> setups_;
  std::map<Pair, Ends> pairs_;
  std::vector<std::uint32_t> done_;
  std::uint64_t steps_taken_ = 0;
};

}  // namespace foretrace
