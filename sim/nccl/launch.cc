// A launch of NCCL's kernel: the operations of one group on one rank's stream.
#include "sim/nccl/launch.h"

#include <algorithm>
#include <utility>

#include "sim/device/stream.h"
#include "sim/nccl/transfer.h"

namespace foretrace::sim {

void NcclLaunch::add(std::shared_ptr<Transfer> transfer, std::uint32_t rank,
                     const Execution& execution, const nccl::Choice& choice) {
  const std::size_t party = transfer->enlist(rank, *this);
  parts_.push_back({std::move(transfer), party, execution.op});
  const auto* collective = std::get_if<NcclCollective>(&execution.op->kind);
  if (collective != nullptr && !nccl::is_send_recv(collective->kind)) {
    std::swap(parts_[collectives_++], parts_.back());
  }
  operations_.push_back({execution});
  channels_ = std::max(channels_, choice.channels);
  ++open_;
}

void NcclLaunch::began() { begin(0, collectives_ > 0 ? collectives_ : parts_.size()); }

void NcclLaunch::begin(std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) parts_[i].transfer->began(parts_[i].party);
}

TimePoint NcclLaunch::joined() const {
  TimePoint last{};
  for (const Part& part : parts_) last = std::max(last, part.transfer->joined());
  return last;
}

void NcclLaunch::transfer_over() {
  const bool collectives_are_over = parts_.size() - --open_ == collectives_;
  if (open_ == 0) {
    stream_.nccl_kernel_finished();
  } else if (collectives_are_over) {
    begin(collectives_, parts_.size());
  }
}

}  // namespace foretrace::sim
