#include "scenarios/program/nccl_connections.h"

#include <algorithm>

namespace foretrace {

std::optional<std::uint32_t> NcclConnections::connect(std::uint32_t rank,
                                                      const std::vector<Pair>& pairs) {
  const auto number = static_cast<std::uint32_t>(setups_.size());
  Setup setup{.rank = rank};
  std::vector<std::uint32_t> first{number};
  for (const Pair& pair : pairs) {
    if (pair.from == pair.to) continue;
    if (const auto back = pairs_.find({pair.to, pair.from}); serve_both_ && back != pairs_.end()) {
      const auto& there = pair.from == rank ? back->second.receiver : back->second.sender;
      if (there && *there != number) continue;
    }
    Ends& ends = pairs_[pair];
    auto& mine = pair.from == rank ? ends.sender : ends.receiver;
    if (mine) continue;
    mine = number;
    setup.steps.push_back({(pair.to + ranks_ - pair.from) % ranks_, pair});
    if (ends.waiting) first.push_back(*std::exchange(ends.waiting, {}));
  }
  if (setup.steps.empty()) return {};
  std::ranges::sort(setup.steps);
  setups_.push_back(std::move(setup));
  for (const std::uint32_t one : first) advance_all(one);
  return number;
}

std::optional<std::uint32_t> NcclConnections::other_end(const Setup& setup) const {
  const Pair& pair = setup.steps[setup.at].pair;
  const Ends& ends = pairs_.at(pair);
  return pair.from == setup.rank ? ends.receiver : ends.sender;
}

bool NcclConnections::has_reached(const Setup& setup, std::uint32_t phase,
                                  std::uint32_t distance) {
  if (setup.phase != phase) return setup.phase > phase;
  return setup.at == setup.steps.size() || setup.steps[setup.at].distance >= distance;
}

/// As far as it goes now; whether that is further than before.
bool NcclConnections::advance(std::uint32_t number) {
  Setup& setup = setups_[number];
  bool moves = false;
  while (setup.phase < kPhases) {
    if (setup.at == setup.steps.size()) {
      setup.at = 0;
      if (++setup.phase == kPhases) done_.push_back(number);
    } else {
      ++steps_taken_;
      const std::optional<std::uint32_t> other = other_end(setup);
      if (!other) {
        pairs_.at(setup.steps[setup.at].pair).waiting = number;
        break;
      }
      if (!has_reached(setups_[*other], setup.phase, setup.steps[setup.at].distance)) {
        setups_[*other].waiting.push_back(number);
        break;
      }
      ++setup.at;
    }
    moves = true;
  }
  return moves;
}

void NcclConnections::advance_all(std::uint32_t first) {
  std::vector<std::uint32_t> moving{first};
  while (!moving.empty()) {
    const std::uint32_t number = moving.back();
    moving.pop_back();
    if (!advance(number)) continue;
    for (const std::uint32_t waiting : std::exchange(setups_[number].waiting, {})) {
      moving.push_back(waiting);
    }
  }
}

NcclConnections::Missing NcclConnections::missing(std::uint32_t number) const {
  const Setup& setup = setups_[number];
  const Pair& pair = setup.steps[setup.at].pair;
  return {pair, pair.from == setup.rank ? pair.to : pair.from, other_end(setup).has_value()};
}

std::optional<NcclConnections::Missing> NcclConnections::first_missing(std::uint32_t setup) const {
  for (std::size_t hops = 0; hops <= setups_.size(); ++hops) {
    const Missing found = missing(setup);
    if (!found.has_come) return found;
    setup = *other_end(setups_[setup]);
  }
  return {};
}

}  // namespace foretrace
