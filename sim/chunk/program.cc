#include "sim/chunk/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/fabric/traffic.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/values/units.h"

namespace foretrace::sim {
namespace {

UsageError too_many_messages(double messages) {
  return UsageError{
      fmt::format("an operation of {:.3g} slices is more than {}: too much for --fidelity chunk\n"
                  "  hint: --fidelity flow",
                  messages, kMostMessages)};
}

/// Channels that pass slices on, from rank to rank or within one.
double links_of(nccl::Shape shape, CollectiveKind kind, std::uint32_t ranks, std::uint32_t nodes) {
  const double others = static_cast<double>(ranks) - 1;
  switch (shape) {
    case nccl::Shape::Ring:
      return ranks;
    case nccl::Shape::Chain:
      return others;
    case nccl::Shape::Tree:
      return (nodes > 1 ? 2 : 1) * (2 * others + 1);
    case nccl::Shape::Pairs:
      return kind == CollectiveKind::AllToAll ? ranks * others : others;
    case nccl::Shape::Whole:
      break;
  }
  return 0;
}

ChunkTime picoseconds(double seconds) { return seconds_to_duration(seconds).count(); }

ChunkPass pass_of(const nccl::Pass& pass, double share, double turn_seconds) {
  const double turns = std::max(1.0, std::ceil(pass.port_seconds * share / turn_seconds - 1e-9));
  return {pass.count,
          pass.slices,
          static_cast<std::uint32_t>(turns),
          picoseconds(pass.before_seconds),
          picoseconds(pass.work_seconds),
          picoseconds(pass.port_seconds * share),
          picoseconds(pass.receive_seconds),
          picoseconds(pass.nic_seconds)};
}

/// All but the graph. `share`: of the bytes, that one of several lanes moves.
ChunkProgram timed(const nccl::Slices& slices, std::uint32_t ranks, double share = 1) {
  ChunkProgram program;
  program.ring = slices.shape == nccl::Shape::Ring;
  program.sends = program.ring ? slices.steps : 1;
  program.fixed = picoseconds(slices.fixed_seconds);
  program.full = pass_of(slices.full, share, slices.turn_seconds);
  program.last = pass_of(slices.last, share, slices.turn_seconds);
  program.window = slices.window;
  program.ranks = ranks;
  return program;
}

void connect(ChunkProgram& program, std::uint32_t from, std::uint32_t to) {
  const auto link = static_cast<std::uint32_t>(program.links.size());
  program.links.push_back({from, to, program.stages[to].rank});
  program.stages[from].outputs.push_back(link);
  program.stages[to].inputs.push_back(link);
}

void add_rings(ChunkProgram& program, std::uint32_t ranks, std::uint32_t lanes) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (std::uint32_t lane = 0; lane < lanes; ++lane) program.stages.push_back({rank, {}, {}});
  }
  for (std::uint32_t i = 0; i < ranks * lanes; ++i) {
    connect(program, i, (i + lanes) % (ranks * lanes));
  }
}

/// Broadcast's chain begins at the root, reduce's ends there.
void add_chain(ChunkProgram& program, CollectiveKind kind, std::uint32_t ranks,
               std::uint32_t root) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) program.stages.push_back({rank, {}, {}});
  const std::uint32_t first = kind == CollectiveKind::Reduce ? root + 1 : root;
  for (std::uint32_t hop = 0; hop + 1 < ranks; ++hop) {
    connect(program, (first + hop) % ranks, (first + hop + 1) % ranks);
  }
}

/// The parent of each rank: within a node a chain to its first rank. The root is its own parent.
std::vector<std::uint32_t> tree_parents(std::uint32_t ranks, std::uint32_t nodes, bool second) {
  const std::uint32_t per_node = ranks / nodes;
  std::vector<std::uint32_t> parents;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const bool first = rank % per_node == 0;
    parents.push_back(first ? parent_node(rank / per_node, nodes, second) * per_node : rank - 1);
  }
  return parents;
}

/// Two stages of each rank and tree: up, then down. Returns the hops of the longest way.
std::uint32_t add_trees(ChunkProgram& program, std::uint32_t ranks, std::uint32_t nodes) {
  const std::uint32_t trees = nodes > 1 ? 2 : 1;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (std::uint32_t i = 0; i < 2 * trees; ++i) program.stages.push_back({rank, {}, {}});
  }
  std::uint32_t deepest = 0;
  for (std::uint32_t tree = 0; tree < trees; ++tree) {
    const auto parents = tree_parents(ranks, nodes, tree == 1);
    const auto up = [&](std::uint32_t rank) { return (rank * trees + tree) * 2; };
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      if (parents[rank] != rank) {
        connect(program, up(rank), up(parents[rank]));
        connect(program, up(parents[rank]) + 1, up(rank) + 1);
      } else {
        connect(program, up(rank), up(rank) + 1);  // inside the root: no port
      }
      std::uint32_t depth = 0;
      for (std::uint32_t at = rank; parents[at] != at; at = parents[at]) ++depth;
      deepest = std::max(deepest, depth);
    }
  }
  return 2 * deepest;
}

/// Every rank to every other (all_to_all), to the root, or from it. Round r goes to the r-th next
/// rank, so that no port gets two slices at once.
void add_pairs(ChunkProgram& program, CollectiveKind kind, std::uint32_t ranks,
               std::uint32_t root) {
  struct Pair {
    std::uint32_t from, to;
  };
  const double links = links_of(nccl::Shape::Pairs, kind, ranks, 1);
  if (links > static_cast<double>(kMostLinks)) {
    throw UsageError{fmt::format(
        "an operation of {:.3g} pairs of ranks is more than {}: too much for --fidelity chunk\n"
        "  hint: --fidelity flow",
        links, kMostLinks)};
  }
  std::vector<Pair> pairs;
  for (std::uint32_t round = 1; round < ranks; ++round) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t to = (rank + round) % ranks;
      const bool taken = kind == CollectiveKind::Gather    ? to == root
                         : kind == CollectiveKind::Scatter ? rank == root
                                                           : true;
      if (taken) pairs.push_back({rank, to});
    }
  }
  std::vector<std::uint32_t> stages_of(ranks + 1);
  for (const Pair& pair : pairs) {
    ++stages_of[pair.from + 1];
    ++stages_of[pair.to + 1];
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) stages_of[rank + 1] += stages_of[rank];
  program.stages.resize(2 * pairs.size());
  for (const Pair& pair : pairs) {
    const std::uint32_t from = stages_of[pair.from]++;
    const std::uint32_t to = stages_of[pair.to]++;
    program.stages[from].rank = pair.from;
    program.stages[to].rank = pair.to;
    connect(program, from, to);
  }
}

}  // namespace

std::uint64_t ChunkProgram::messages() const {
  const double slices =
      static_cast<double>(full.count) * full.slices + static_cast<double>(last.count) * last.slices;
  const double all = slices * static_cast<double>(sends) * static_cast<double>(links.size());
  if (all > static_cast<double>(kMostMessages)) throw too_many_messages(all);
  return static_cast<std::uint64_t>(all);
}

ChunkSize chunk_size(const nccl::Slices& slices, CollectiveKind kind, std::uint32_t ranks,
                     std::uint32_t nodes) {
  const double links = links_of(slices.shape, kind, ranks, nodes);
  const double sends = slices.shape == nccl::Shape::Ring ? slices.steps : 1;
  const auto slices_of = [](const nccl::Pass& pass) {
    return static_cast<double>(pass.count) * pass.slices;
  };
  return {links, links * sends * (slices_of(slices.full) + slices_of(slices.last))};
}

ChunkProgram collective_program(const nccl::Slices& slices, CollectiveKind kind,
                                std::uint32_t ranks, std::uint32_t nodes, std::uint32_t root,
                                std::uint32_t lanes) {
  switch (slices.shape) {
    case nccl::Shape::Ring: {
      ChunkProgram program = timed(slices, ranks, 1.0 / lanes);
      add_rings(program, ranks, lanes);
      return program;
    }
    case nccl::Shape::Chain: {
      ChunkProgram program = timed(slices, ranks);
      add_chain(program, kind, ranks, root);
      program.hop = picoseconds(slices.hop_seconds / (ranks - 1));
      program.together = nodes > 1;
      return program;
    }
    case nccl::Shape::Tree: {
      ChunkProgram program = timed(slices, ranks, nodes > 1 ? 0.5 : 1);
      program.hop = picoseconds(slices.hop_seconds / add_trees(program, ranks, nodes));
      return program;
    }
    case nccl::Shape::Pairs: {
      ChunkProgram program = timed(slices, ranks);
      add_pairs(program, kind, ranks, root);
      return program;
    }
    case nccl::Shape::Whole:
      break;
  }
  return {};
}

ChunkProgram pair_program(const nccl::Slices& slices) {
  ChunkProgram program = timed(slices, 2);
  program.stages = {{0, {}, {}}, {1, {}, {}}};
  connect(program, 0, 1);
  return program;
}

ChunkProgram copy_program(std::uint64_t bytes, double rate, double port) {
  const auto size = static_cast<double>(bytes);
  const double pieces = std::max(1.0, std::ceil(size / nccl::port_turn_bytes()));
  if (pieces > static_cast<double>(kMostMessages)) throw too_many_messages(pieces);
  ChunkProgram program;
  program.by_kernel = false;
  program.full = {1, static_cast<std::uint32_t>(pieces), 1,
                  0, picoseconds(size / rate / pieces),  picoseconds(size / port / pieces),
                  0};
  program.ranks = 2;
  program.stages.push_back({0, {}, {0}});
  program.links = {{0, kNowhere, 1}};
  return program;
}

}  // namespace foretrace::sim
