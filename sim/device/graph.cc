#include "sim/device/graph.h"

namespace foretrace::sim {

void GraphExec::begin_capture() {
  entries_.clear();
  nodes_ = 0;
}

void GraphExec::capture(StreamQueue& stream, Work::What what) {
  entries_.push_back({&stream, std::move(what)});
  if (is_node(entries_.back())) ++nodes_;
}

StreamQueue& GraphExec::chain_of(StreamQueue& stream) {
  auto& chain = chains_[&stream];
  if (chain == nullptr) chain = stream.make_chain(*this);
  return *chain;
}

void GraphExec::start(GraphWork& work, const Execution& execution, std::uint32_t lane,
                      GraphOwner& owner) {
  launches_.push_back({&work, execution, lane, &owner});
  if (!running_) begin();
}

void GraphExec::begin() {
  running_ = !launches_.empty();
  if (!running_) return;
  parts_ = 0;
  open_chains_ = 1;  // this function itself
  for (auto& [chain, what] : launches_.front().work->entries) {
    chain->push({execution(), engine_.now(), 0, 1, std::move(what)});
  }
  for (const auto& [stream, chain] : chains_) {
    if (chain->pending() == 0) continue;
    ++open_chains_;
    chain->wait_for_count(chain->issued(), *this);
  }
  wake();
}

/// One chain has come to its end.
void GraphExec::wake() {
  if (--open_chains_ > 0) return;
  GraphOwner* owner = launches_.front().owner;
  launches_.pop_front();
  owner->graph_ended();  // may launch again
  begin();
}

}  // namespace foretrace::sim
