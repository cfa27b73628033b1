#include "scenarios/training_step/places.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

namespace foretrace::training {
namespace {

using Group = std::vector<std::int64_t>;
using Signature = std::vector<std::int64_t>;

/// Colours of processes, refined until processes of a colour see the same colours around them.
class Symmetry {
 public:
  explicit Symmetry(const TrainingStep& step)
      : step_{step},
        each_node_{std::max<std::int64_t>(1, step.processes() / step.nodes)},
        colours_(static_cast<std::size_t>(step.processes())) {
    for (std::int64_t stage = 0; stage < step.pipeline; ++stage) add_groups(stage);
    first_colours();
    while (refine()) {
    }
  }

  std::vector<std::int64_t> chosen() const {
    std::vector<bool> is_chosen(colours_.size());
    std::vector<std::int64_t> open;
    const auto choose = [&](std::int64_t process) {
      if (is_chosen[at(process)]) return;
      is_chosen[at(process)] = true;
      open.push_back(process);
    };
    choose(0);
    while (!open.empty()) {
      const std::int64_t process = open.back();
      open.pop_back();
      for (const std::size_t group : groups_of_[at(process)]) {
        std::map<std::int64_t, std::int64_t> first;  // of each colour, a chosen one before others
        for (const std::int64_t member : groups_[group]) {
          const auto [entry, is_new] = first.try_emplace(colours_[at(member)], member);
          if (!is_new && is_chosen[at(member)] && !is_chosen[at(entry->second)])
            entry->second = member;
        }
        for (const auto& [colour, member] : first) choose(member);
      }
      for (const std::int64_t peer : peers(process)) choose(peer);
    }
    std::vector<std::int64_t> all;
    for (std::int64_t process = 0; process < step_.processes(); ++process) {
      if (is_chosen[at(process)]) all.push_back(process);
    }
    return all;
  }

 private:
  static std::size_t at(std::int64_t process) { return static_cast<std::size_t>(process); }
  std::int64_t node(std::int64_t process) const { return process / each_node_; }

  void add(Group members) {
    for (const std::int64_t member : members) groups_of_[at(member)].push_back(groups_.size());
    groups_.push_back(std::move(members));
  }
  void add_groups(std::int64_t stage) {
    groups_of_.resize(colours_.size());
    for (std::int64_t replica = 0; step_.tensor > 1 && replica < step_.replicas(); ++replica) {
      add(tensor_ranks(step_, {stage, replica, 0}));
    }
    for (std::int64_t shard = 0; step_.replicas() > 1 && shard < step_.tensor; ++shard) {
      add(data_ranks(step_, {stage, 0, shard}));
      for (std::int64_t i = 0; step_.context > 1 && i < step_.data; ++i) {
        add(context_ranks(step_, {stage, i * step_.context, shard}));
      }
      const std::int64_t near = step_.neighbours();
      for (std::int64_t i = 0; near > 1 && i < step_.replicas(); i += near) {
        add(neighbour_ranks(step_, {stage, i, shard}));
      }
      for (std::int64_t i = 0; near > 1 && i < near; ++i) {
        add(same_part_ranks(step_, {stage, i, shard}));
      }
    }
    if (stage > 0 || !shares_embedding(step_, stage)) return;
    for (std::int64_t i = 0; i < step_.replicas() * step_.tensor; ++i) {
      add(embedding_ranks(step_, place_of(step_, i)));
    }
  }
  std::vector<std::int64_t> peers(std::int64_t process) const {
    const std::int64_t distance = step_.replicas() * step_.tensor;
    std::vector<std::int64_t> result;
    if (process >= distance) result.push_back(process - distance);
    if (process + distance < step_.processes()) result.push_back(process + distance);
    if (step_.chunks > 1) {  // the last stage sends to the first
      const std::int64_t all = step_.processes();
      if (process < distance) result.push_back(process + all - distance);
      if (process + distance >= all) result.push_back(process + distance - all);
    }
    if (step_.context > 1) {
      const ContextNeighbours ring = context_neighbours(step_, place_of(step_, process));
      result.insert(result.end(), {ring.previous, ring.next});
    }
    return result;
  }
  /// How many of a group's members each node has, in ascending order.
  Signature spread(const Group& group) const {
    std::map<std::int64_t, std::int64_t> on;
    for (const std::int64_t member : group) ++on[node(member)];
    Signature counts;
    for (const auto& [number, count] : on) counts.push_back(count);
    std::ranges::sort(counts);
    return counts;
  }

  /// Equal signatures get equal colours. Returns how many colours there are.
  std::size_t paint(const std::vector<Signature>& signatures) {
    std::map<Signature, std::int64_t> known;
    for (std::size_t i = 0; i < signatures.size(); ++i) {
      const auto next = static_cast<std::int64_t>(known.size());
      colours_[i] = known.try_emplace(signatures[i], next).first->second;
    }
    return known.size();
  }
  void first_colours() {
    std::map<Signature, std::int64_t> known;
    std::vector<std::int64_t> kinds;
    for (const Group& group : groups_) {
      const auto next = static_cast<std::int64_t>(known.size());
      kinds.push_back(known.try_emplace(spread(group), next).first->second);
    }
    std::vector<Signature> signatures;
    for (std::int64_t process = 0; process < step_.processes(); ++process) {
      const Place place = place_of(step_, process);
      Signature signature{place.stage, place.replica % step_.context};
      for (const std::size_t group : groups_of_[at(process)]) signature.push_back(kinds[group]);
      for (const std::int64_t peer : peers(process)) {
        signature.push_back(node(peer) == node(process) ? -1 : -2);
      }
      signatures.push_back(std::move(signature));
    }
    count_ = paint(signatures);
  }
  bool refine() {
    std::map<Signature, std::int64_t> known;
    std::vector<std::int64_t> kinds;
    for (const Group& group : groups_) {
      Signature inside;
      for (const std::int64_t member : group) inside.push_back(colours_[at(member)]);
      std::ranges::sort(inside);
      const auto next = static_cast<std::int64_t>(known.size());
      kinds.push_back(known.try_emplace(std::move(inside), next).first->second);
    }
    std::vector<Signature> signatures;
    for (std::int64_t process = 0; process < step_.processes(); ++process) {
      Signature signature{colours_[at(process)]};
      for (const std::size_t group : groups_of_[at(process)]) signature.push_back(kinds[group]);
      for (const std::int64_t peer : peers(process)) signature.push_back(colours_[at(peer)]);
      signatures.push_back(std::move(signature));
    }
    const std::size_t before = std::exchange(count_, paint(signatures));
    return count_ > before;
  }

  const TrainingStep& step_;
  std::int64_t each_node_;
  std::vector<std::int64_t> colours_;  ///< by process
  std::vector<Group> groups_;
  std::vector<std::vector<std::size_t>> groups_of_;  ///< by process
  std::size_t count_ = 0;
};

}  // namespace

Place place_of(const TrainingStep& step, std::int64_t process) {
  return {process / step.tensor / step.replicas(), process / step.tensor % step.replicas(),
          process % step.tensor};
}

std::int64_t process_at(const TrainingStep& step, const Place& place) {
  return (place.stage * step.replicas() + place.replica) * step.tensor + place.shard;
}

std::vector<std::int64_t> tensor_ranks(const TrainingStep& step, const Place& place) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(step.tensor));
  std::iota(ranks.begin(), ranks.end(), process_at(step, {place.stage, place.replica, 0}));
  return ranks;
}

std::vector<std::int64_t> data_ranks(const TrainingStep& step, const Place& place) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t replica = 0; replica < step.replicas(); ++replica) {
    ranks.push_back(process_at(step, {place.stage, replica, place.shard}));
  }
  return ranks;
}

std::vector<std::int64_t> context_ranks(const TrainingStep& step, const Place& place) {
  std::vector<std::int64_t> ranks;
  const std::int64_t first = place.replica / step.context * step.context;
  for (std::int64_t replica = first; replica < first + step.context; ++replica) {
    ranks.push_back(process_at(step, {place.stage, replica, place.shard}));
  }
  return ranks;
}

ContextNeighbours context_neighbours(const TrainingStep& step, const Place& place) {
  const std::vector<std::int64_t> ring = context_ranks(step, place);
  const auto size = ring.size();
  const auto position = static_cast<std::size_t>(place.replica % step.context);
  return {static_cast<std::int64_t>(position), ring[(position + size - 1) % size],
          ring[(position + 1) % size]};
}

std::vector<std::int64_t> neighbour_ranks(const TrainingStep& step, const Place& place) {
  std::vector<std::int64_t> ranks;
  const std::int64_t first = place.replica / step.neighbours() * step.neighbours();
  for (std::int64_t replica = first; replica < first + step.neighbours(); ++replica) {
    ranks.push_back(process_at(step, {place.stage, replica, place.shard}));
  }
  return ranks;
}

std::vector<std::int64_t> same_part_ranks(const TrainingStep& step, const Place& place) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t replica = place.replica % step.neighbours(); replica < step.replicas();
       replica += step.neighbours()) {
    ranks.push_back(process_at(step, {place.stage, replica, place.shard}));
  }
  return ranks;
}

std::vector<std::int64_t> embedding_ranks(const TrainingStep& step, const Place& place) {
  return {process_at(step, {0, place.replica, place.shard}),
          process_at(step, {step.pipeline - 1, place.replica, place.shard})};
}

bool shares_embedding(const TrainingStep& step, std::int64_t stage) {
  return step.model.tied && step.pipeline > 1 && (stage == 0 || stage + 1 == step.pipeline);
}

std::vector<std::int64_t> one_of_each(const TrainingStep& step) { return Symmetry{step}.chosen(); }

}  // namespace foretrace::training
