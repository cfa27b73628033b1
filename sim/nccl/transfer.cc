#include "sim/nccl/transfer.h"

#include <algorithm>

#include "scenarios/base/text/errors.h"

namespace foretrace::sim {

Transfer::Transfer(Engine& engine, UnderWay& under_way, TransferKey key,
                   const std::vector<std::uint32_t>& ranks, nccl::Cost cost, TransferPath path)
    : engine_{engine},
      under_way_{under_way},
      key_{std::move(key)},
      missing_{ranks.size()},
      cost_{std::move(cost)},
      path_{path} {
  if (path.network != nullptr) {  // the wire and the network are busy side by side
    const Duration wire = at_rate(cost_.wire_bytes, path.wire_rate);
    cost_.latency += wire + path.network->latency - std::max(wire, cost_.network);
  }
  parties_.reserve(ranks.size());
  for (const std::uint32_t rank : ranks) parties_.push_back({rank});
}

std::size_t Transfer::enlist(std::uint32_t rank, NcclLaunch& launch) {
  const auto is_free = [&](std::size_t party) {
    return parties_[party].rank == rank && parties_[party].launch == nullptr;
  };
  std::size_t party = 0;
  if (rank < parties_.size() && is_free(rank)) party = rank;
  // Else one of a pair; a rank that sends to itself is both.
  while (party < parties_.size() && !is_free(party)) ++party;
  FORETRACE_CHECK(party < parties_.size(), "a rank takes part once");
  parties_[party].launch = &launch;
  return party;
}

void Transfer::set_chain(std::vector<std::size_t> order, bool eager) {
  chain_ = std::move(order);
  is_eager_ = eager;
}

void Transfer::keep_alive() {
  if (scheduled_++ == 0) kept_alive_ = under_way_.insert(under_way_.end(), shared_from_this());
}

void Transfer::at(TimePoint when, std::uint64_t what) {
  keep_alive();
  engine_.queue().at(when, *this, what);
}

void Transfer::flow(PathId path, Bytes size, Event what) {
  keep_alive();
  engine_.start_flow(path, size, *this, what);
}

void Transfer::room_made() {
  if (std::exchange(waits_for_room_, false)) at(engine_.now(), kRoom);
}

/// For what `writer` leaves behind where its readers have not come.
bool Transfer::finds_room(std::size_t writer) {
  for (Hop& hop : hops_) {
    if (hop.writer != writer || hop.written || parties_[hop.reader].begun) continue;
    hop.written = hop.window->write(hop.steps, *this);
    if (hop.written) continue;
    waits_for_room_ = true;
    return false;
  }
  return true;
}

void Transfer::reads(std::size_t party) {
  for (Hop& hop : hops_) {
    if (hop.reader != party) continue;
    if (std::exchange(hop.written, false)) hop.window->read(hop.steps);
    hop.window->forget(*this);
    // Else it ends when its reader has read.
    if (!chain_.empty() && hop.writer == chain_[passed_]) room_made();
  }
}

bool Transfer::may_leave(std::size_t party) const {
  if (buffered_sender_) return parties_[party].rank == *buffered_sender_;
  if (buffered_reader_)
    return missing_ == 0 || (missing_ == 1 && !parties_[*buffered_reader_].begun);
  return missing_ == 0 || (is_eager_ && party == chain_.front());
}

void Transfer::began(std::size_t party) {
  parties_[party].begun = true;
  if (--missing_ == 0) joined_ = engine_.now();
  reads(party);
  if (!mismatch_.empty()) {
    parties_[party].is_lost = true;  // whatever is on its way
    return;
  }
  if (network_ != nullptr) {
    const auto begin = [this](std::size_t one) {
      network_->begin(chunks_,
                      position_.empty() ? static_cast<std::uint32_t>(one) : position_[one]);
    };
    if (!cost_.choice.direct) {
      begin(party);
    } else if (missing_ == 0) {  // before that, nobody knows where to write
      for (std::size_t one = 0; one < parties_.size(); ++one) begin(one);
    }
    return;
  }
  if (!has_left_ && may_leave(party)) {
    has_left_ = true;
    leave();
  } else if (has_arrived_ && !chain_.empty()) {
    if (chain_[passed_] == party) {  // it reads what lies in its buffers
      passes_ = std::max(passes_, engine_.now() + cost_.latency);
      at(passes_, kPassedOn);
    }
  } else if (has_arrived_) {  // it lies in the receiver's buffers
    at(engine_.now() + cost_.latency, kReadLate + party);
  }
}

std::vector<Transfer::Missing> Transfer::missing() const {
  std::vector<Missing> ranks;
  for (const Party& party : parties_) {
    if (!party.begun) ranks.push_back({party.rank, party.launch});
  }
  return ranks;
}

void Transfer::leave() {
  if (!path_.memory || cost_.latency < path_.memory->least) {
    at(engine_.now() + cost_.latency, kLatencyOver);
    return;
  }
  const double bytes = to_seconds(cost_.latency) * path_.memory->idle.bytes_per_second();
  flow(path_.memory->path, {static_cast<std::uint64_t>(bytes)}, kLatencyOver);
}

void Transfer::fire(std::uint64_t what) {
  const std::shared_ptr<Transfer> alive = *kept_alive_;
  if (--scheduled_ == 0) under_way_.erase(kept_alive_);
  if (what == kLatencyOver) start_flows();
  if (what == kArrived) --flows_;
  if (flows_ > 0) return;
  if (!std::exchange(has_arrived_, true)) {
    for (Party& party : parties_) party.done = party.begun && !party.is_lost;
  }
  if (what >= kReadLate) parties_[what - kReadLate].done = true;
  if (chain_.empty()) {
    end_done();
  } else {
    pass_on();
  }
}

/// The next one of the chain is over.
void Transfer::pass_on() {
  if (!finds_room(chain_[passed_])) return;
  NcclLaunch* const over = std::exchange(parties_[chain_[passed_]].launch, nullptr);
  const bool is_last = ++passed_ == chain_.size();
  passes_ = engine_.now() + (passed_ + 1 < chain_.size() ? *cost_.hop : cost_.last_hop);
  if (!is_last && mismatch_.empty() && parties_[chain_[passed_]].begun) {
    at(passes_, kPassedOn);
  }
  over->transfer_over();
}

/// Through the ports and, between nodes, each kind of link of the network: over with the last.
void Transfer::start_flows() {
  const auto start = [this](PathId path, Bytes size) {
    if (size.count == 0) return;
    ++flows_;
    flow(path, size, kArrived);
  };
  start(path_.wire, cost_.wire_bytes);
  if (path_.network == nullptr) return;
  for (const NetworkFlow& flow : path_.network->flows) {
    start(flow.path, path_.network->bytes(flow, cost_.network));
  }
}

/// Over for all that are through, and have room for what they leave behind.
void Transfer::end_done() {
  std::vector<NcclLaunch*> over;
  for (std::size_t i = 0; i < parties_.size(); ++i) {
    Party& party = parties_[i];
    if (party.done && party.launch != nullptr && finds_room(i))
      over.push_back(std::exchange(party.launch, nullptr));
  }
  for (NcclLaunch* launch : over) launch->transfer_over();
}

void Transfer::set_chunks(ChunkNetwork& network, const ChunkProgram& program,
                          const std::vector<std::uint32_t>& gpus,
                          const std::vector<std::uint32_t>& order) {
  network_ = &network;
  order_ = order;
  position_.resize(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
  chunks_ = network.add(program, gpus, *this);
}

/// Each rank's kernel ends when its own part is over.
void Transfer::rank_over(std::uint32_t rank) {
  parties_[order_.empty() ? rank : order_[rank]].launch->transfer_over();
}

}  // namespace foretrace::sim
