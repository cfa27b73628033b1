// The NCCL calls of a host thread, alone or grouped: connections first, then one kernel per
// communicator and device.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "models/nccl/rules/registration.h"
#include "sim/host/caller.h"

namespace foretrace::sim {

/// One rank's kernel for some NCCL calls, before it is queued.
struct NcclKernel {
  CommHandle handle;
  StreamQueue* stream;
  std::shared_ptr<NcclLaunch> launch;
  nccl::Choice choice;
  Execution execution;
  Duration issued;  ///< after the call began
  std::vector<nccl::Call> together;
  std::size_t joined = 0;                                             ///< of `together`
  std::map<std::pair<std::uint32_t, std::uint32_t>, Duration> ahead;  ///< by sender and receiver
  std::vector<const NcclCall*> entries;  ///< that the launch runs, in its operations' order
};

class NcclCalls {
 public:
  explicit NcclCalls(Caller& caller) : caller_{caller} {}

  /// The operation under way is noted; `issue` launches what is noted, once it is connected.
  void add();
  void issue();
  /// A wait of `issue` has ended. False: there was none.
  bool go_on();
  /// `queue_of(StreamQueue&)`: where what was called on a stream goes. `call` grows by what the
  /// calls take the host.
  using QueueOf = std::function<StreamQueue&(StreamQueue&)>;
  std::vector<NcclKernel> prepare(const std::vector<NcclCall>& calls, const QueueOf& queue_of,
                                  Duration& call);
  /// What a NCCL kernel takes longer since other kernels' memory drove its code and its flags out
  /// of the level-2 cache.
  Duration cold_time(std::uint32_t device);

 private:
  enum class Stage : std::uint8_t { None, Pairs, Collectives, Launch };

  static DecidedBy decided_by(const NcclKernel& kernel, const NcclCall& entry);
  void set_details(NcclKernel& kernel, bool both_ways);
  std::vector<nccl::Call> together_on(const CommHandle& handle,
                                      const std::vector<NcclCall>& calls) const;
  nccl::Offer offer(CommId comm, const BufferRef& ref) const;
  bool goes_directly(std::vector<BufferId>& mapped) const;
  Duration map_time(const std::vector<BufferId>& buffers, const NcclCall& call);
  void connect_pairs();
  void connect_collectives();
  void capture();
  void launch_all();
  void launch(const NcclKernel& kernel, Duration later);
  void launch_next();
  const CommHandle& handle_of(const NcclCall& call) const;
  Duration call_cost(Param param, std::uint32_t device);

  Caller& caller_;
  Stage stage_ = Stage::None;  ///< of the calls noted: what comes next
  std::vector<NcclCall> calls_;
  std::vector<NcclCall> launching_;     ///< where each launch waits for its kernel
  std::vector<NcclKernel> kernels_;     ///< of those calls
  std::size_t next_ = 0;                ///< of the kernels
  Priced call_;                         ///< the call that launches them
  Duration mapping_{0};                 ///< of registered buffers, for them
  std::vector<cost::Call> host_calls_;  ///< of the launch under way
  bool has_connected_ = false;          ///< for it
};

}  // namespace foretrace::sim
