// One run of NCCL's channel search (nccl src/graph/search.cc): for a given speed and pattern, lays
// channels over the GPUs of a node until its links are used up, depth first, with NCCL's order of
// trying, its limit of steps, and its way of comparing what it finds.
#pragma once

#include <boost/container/static_vector.hpp>
#include <cstdint>
#include <vector>

#include "models/nccl/topology/paths.h"
#include "models/nccl/topology/topology.h"

namespace foretrace::nccl {

/// A graph while it is searched for.
struct SearchState {
  SearchGraph graph;  ///< what is asked for, with the channels laid so far
  std::uint32_t min_channels = 1;
  std::uint32_t max_channels = 32;
  int cross_nic = 0;
  int hops = 0;
  std::vector<std::vector<std::uint32_t>> orders;  ///< GPUs of each channel
  std::vector<std::uint32_t> in_nics, out_nics;    ///< of each channel
};

class ChannelSearch {
 public:
  ChannelSearch(SearchNode& node, const SearchState& wanted, SearchState& best, int steps)
      : node_{node}, at_{wanted}, best_{best}, steps_{steps} {}

  /// Improves `best`; returns the steps left, -1 where nothing better can exist.
  int run();

 private:
  enum class Order : std::uint8_t { Free, Numbered, AsBefore };
  static constexpr int kNever = -1;

  /// Where the present channel goes back to its NIC, or to its first GPU.
  struct Turns {
    int to_nic = kNever;
    int to_first = kNever;
  };

  void next_channel();
  void next_channel_between_nodes(Turns turns);
  void from_nic(std::uint32_t nic, Turns turns);
  void channel_done();
  void visit(std::uint32_t gpu, std::size_t step, Turns turns, Order order);
  void back_to_nic(std::uint32_t gpu, std::size_t step, Turns turns, Order order);
  bool may_return_to(std::uint32_t nic, std::size_t step) const;
  void nvls_head(std::uint32_t gpu);
  void try_first(std::uint32_t gpu, Turns turns, Order order);
  void try_next(std::uint32_t from, std::uint32_t gpu, std::size_t step, Turns turns, Order order);
  std::vector<std::uint32_t> candidates(std::uint32_t gpu, Turns turns, std::size_t step) const;
  bool better() const;

  bool take(const SearchPath& path, float gbps, Path longest, bool from_gpu);
  void give_back(const SearchPath& path, float gbps, bool from_gpu);
  bool tree() const { return at_.graph.pattern <= Pattern::Tree; }
  std::size_t channel() const { return at_.graph.channels; }
  using Neighbours = boost::container::static_vector<std::uint32_t, 2>;  // GPUs
  Neighbours neighbours(std::uint32_t gpu) const;
  std::vector<std::uint32_t> nics_near(std::uint32_t first, std::uint32_t end) const;

  SearchNode& node_;
  SearchState at_;
  SearchState& best_;
  int steps_;
  std::vector<std::vector<bool>> used_;  ///< [channel][GPU]
  std::vector<std::uint32_t> all_nics_;
  std::vector<std::vector<std::uint32_t>> own_nics_;  ///< by GPU, its nearest first
};

}  // namespace foretrace::nccl
