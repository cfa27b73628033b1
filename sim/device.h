// One GPU: SMs and memory bandwidth shared by running kernels, and copy engines.
//
// SMs go to kernels in the order they arrive (a later one gets what is left over and grows when
// SMs become free); memory bandwidth is shared max-min fair. Whenever the set of kernels changes,
// the rates of this GPU's kernels are recomputed and their ends moved.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "models/kernel_cost.h"
#include "sim/engine.h"

namespace foretrace::sim {

/// A kernel's owner: told when it got its first SMs and when it ended.
class KernelOwner {
 public:
  virtual void kernel_began() = 0;
  virtual void kernel_ended() = 0;

 protected:
  ~KernelOwner() = default;
};

struct DeviceLimits {
  std::uint32_t sms = 1;
  double hbm_bytes_per_second = 1;
  std::uint32_t copy_engines = 2;
};

class Device final : Handler {
 public:
  Device(Engine& engine, DeviceLimits limits) : engine_{engine}, limits_{limits} {}

  /// Begins as soon as an SM is free.
  void start(KernelOwner& owner, const KernelCost& cost);

  /// Occupies `sms` SMs until release(): a kernel whose end others decide (NCCL). Begins when all
  /// of them are free, since its blocks wait for each other's peers.
  void occupy(KernelOwner& owner, std::uint32_t sms);
  void release(KernelOwner& owner);

  /// Called when the copy engine is this copy's; it must call copy_ended() when done.
  class CopyOwner {
   public:
    virtual void copy_engine_free() = 0;

   protected:
    ~CopyOwner() = default;
  };
  void acquire_copy_engine(std::uint32_t engine, CopyOwner& owner);
  void release_copy_engine(std::uint32_t engine);

 private:
  struct Job {
    KernelOwner* owner;
    KernelCost cost;
    bool held = false;  ///< ends by release()
    bool began = false;
    double remaining = 1;  ///< part of the work still to do
    double speed = 0;      ///< 1: as fast as alone
    std::uint32_t sms = 0;
    TimePoint since{};
    std::uint64_t version = 0;
  };
  struct CopyEngine {
    CopyOwner* busy = nullptr;
    std::deque<CopyOwner*> waiting;
  };

  void fire(std::uint64_t version) override;
  void add(Job job);
  void remove(std::size_t index);
  void share();
  void share_memory_bandwidth();
  void update(Job& job, double speed);

  Engine& engine_;
  DeviceLimits limits_;
  std::vector<Job> jobs_;  ///< in order of arrival
  std::uint64_t next_version_ = 0;
  /// A GPU with one engine runs copies of all directions through it, one at a time.
  CopyEngine& copy_engine(std::uint32_t kind);

  std::vector<CopyEngine> copy_engines_;
};

}  // namespace foretrace::sim
