// A launch of NCCL's kernel: one rank's, for a call or a group. It occupies its SMs from when its
// stream reaches it, and ends when all transfers that it takes part in are over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/nccl/rules/tuning.h"
#include "scenarios/base/values/units.h"
#include "sim/device/work.h"

namespace foretrace::sim {

class StreamQueue;
class Transfer;

/// One NCCL call as a host thread made it, alone or in a group.
struct NcclCall {
  Execution execution;
  std::vector<std::int64_t> variables;
  bool direct = false;  ///< its buffers are registered: see models/nccl/rules/registration.h
};

class NcclLaunch {
 public:
  /// The launch before on the same communicator and device: NCCL runs them in this order,
  /// whatever streams they are on.
  struct Order {
    StreamQueue* stream = nullptr;
    std::uint64_t count = 0;
  };

  NcclLaunch(StreamQueue& stream, Order after) : stream_{stream}, after_{after} {}

  /// Takes part in `transfer` as `rank`.
  void add(std::shared_ptr<Transfer> transfer, std::uint32_t rank, const Execution& execution,
           const nccl::Choice& choice);

  /// The kernel runs: it arrives at all its collectives, and after them at its sends and receives,
  /// as each of its channels does.
  void began();
  void transfer_over();

  std::uint32_t channels() const { return channels_; }
  /// When the last of the ranks began that it has waited for; never later than it ended.
  TimePoint joined() const;
  /// A call that the kernel runs, and the detail of its span.
  struct Operation {
    Execution execution;
    std::uint32_t detail = 0;
  };
  const std::vector<Operation>& operations() const { return operations_; }
  void set_detail(std::size_t operation, std::uint32_t detail) {
    operations_[operation].detail = detail;
  }
  /// A transfer, and which of its parties this launch is.
  struct Part {
    std::shared_ptr<Transfer> transfer;
    std::size_t party;
    const Op* op;
  };
  const std::vector<Part>& parts() const { return parts_; }
  const Order& after() const { return after_; }
  const StreamQueue& stream() const { return stream_; }
  /// From the kernel's begin until it arrives at its transfers.
  void set_cold(Duration cold) { cold_ = cold; }
  Duration cold() const { return cold_; }

 private:
  void begin(std::size_t first, std::size_t end);

  StreamQueue& stream_;
  Order after_;
  std::vector<Part> parts_;      ///< collectives first
  std::size_t collectives_ = 0;  ///< of them
  std::vector<Operation> operations_;
  std::size_t open_ = 0;
  std::uint32_t channels_ = 0;
  Duration cold_{};
};

}  // namespace foretrace::sim
