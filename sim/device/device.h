// One GPU: SMs and memory bandwidth shared by running kernels, and copy engines.
//
// Thread blocks are given out in the order of the streams' priorities, then of arrival: a later
// kernel gets what is left over. A block is never interrupted, so a kernel of higher priority waits
// for the end of a wave. Memory bandwidth is shared max-min fair. Whenever what runs changes, the
// speeds are recomputed and the ends moved.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/constants/constants.h"
#include "models/cost/kernel.h"
#include "sim/device/clock.h"
#include "sim/device/joined_link.h"
#include "sim/engine/engine.h"
#include "sim/engine/queue.h"

namespace foretrace::sim {

class ChunkNetwork;

/// A kernel's owner: told when it got its first SMs and when it ended.
class KernelOwner {
 public:
  virtual void kernel_began() = 0;
  virtual void kernel_ended() = 0;

 protected:
  ~KernelOwner() = default;
};

/// NCCL's way through a GPU's memory: a link whose bandwidth falls while other kernels use it.
struct NcclMemory {
  JoinedLink* link = nullptr;
  std::size_t member = 0;  ///< of the link
  std::uint32_t gpu = 0;
  ChunkNetwork* chunks = nullptr;  ///< at chunk fidelity the slices of `gpu` slow down as much
  Bandwidth idle;                  ///< while no other kernel uses the memory
  double slowdown = 0;             ///< 1: half of it when they use all of its bandwidth
};

struct DeviceLimits {
  std::uint32_t sms = 1;
  double hbm_bytes_per_second = 1;
  std::uint32_t copy_engines = 2;
  std::optional<NcclMemory> nccl_memory{};
  ClockTimes clock{};
  double slowness = 1;  ///< of every kernel: 2 takes twice as long
  double jitter = 0;    ///< at most so much of a kernel's time more, uniformly, by `seed`
  std::uint64_t seed = 0;
  TermSet without{};  ///< terms that are left out

  bool takes(Term term) const { return !without.test(static_cast<std::size_t>(term)); }
};

class Device final : Handler {
 public:
  Device(Engine& engine, DeviceLimits limits)
      : engine_{engine}, limits_{limits}, clock_{limits.clock} {}

  /// Begins as soon as an SM is free. `priority` is CUDA's: a lower number goes first. `in_graph`:
  /// a node.
  void start(KernelOwner& owner, const cost::KernelCost& cost, int priority, bool in_graph = false);

  /// Occupies `sms` SMs until release(): a kernel whose end others decide (NCCL). It takes SMs as
  /// they become free and begins when it has all of them, since its blocks wait for each other.
  void occupy(KernelOwner& owner, std::uint32_t sms, int priority);
  void release(KernelOwner& owner);

  /// Called when the copy engine is this copy's; it must release the engine when done.
  class CopyOwner {
   public:
    virtual void copy_engine_free() = 0;

   protected:
    ~CopyOwner() = default;
  };
  /// Kernels use what they get of its bandwidth, less than the nominal one.
  bool memory_is_saturated() const { return memory_used_ > constant("device.saturated"); }
  /// A GPU with one engine runs copies of all kinds through it, one at a time; one without runs
  /// them when no kernel runs.
  void acquire_copy_engine(std::uint32_t kind, CopyOwner& owner);
  void release_copy_engine(std::uint32_t kind);
  /// Of its own: one that does all copies is not busy beside itself.
  bool copy_engine_is_busy(std::uint32_t kind) const {
    return limits_.copy_engines > 1 && kind < copy_engines_.size() &&
           copy_engines_[kind].busy != nullptr;
  }

 private:
  struct Kernel {
    KernelOwner* owner = nullptr;
    cost::KernelCost cost;
    int priority = 0;
    bool in_graph = false;
    bool held = false;  ///< ends by release()
    bool began = false;
    bool waited = false;  ///< for its places
    std::uint32_t held_sms = 0;
    std::uint32_t blocks_left = 0;  ///< not given to an SM yet
    bool stays = false;             ///< its blocks keep their SMs until they end
    bool own_tiles = false;         ///< some of them begin late, and compute their own tiles then
    std::uint32_t tiles_of_nobody = 0;  ///< beyond those, which those that are done take
    std::uint32_t running = 0;          ///< jobs
  };
  /// What runs: some waves of a kernel's blocks on some SMs, or all of a kernel without blocks.
  struct Job {
    Kernel* kernel;
    std::uint32_t sms;
    std::uint32_t waves;
    Duration alone;        ///< what it takes at speed 1
    double remaining = 1;  ///< part of the work still to do
    double speed = 0;
    TimePoint since{};
    std::uint64_t version = 0;
  };
  /// A kernel that will get its places.
  struct Waiting {
    Kernel kernel;
    std::uint64_t version;
  };
  struct CopyEngine {
    CopyOwner* busy = nullptr;
    Queue<CopyOwner*> waiting;
  };
  /// A copy on a GPU without a copy engine: a kernel on all SMs.
  struct ExclusiveCopy final : KernelOwner {
    explicit ExclusiveCopy(CopyOwner& owner) : copy{owner} {}
    void kernel_began() override { copy.copy_engine_free(); }
    void kernel_ended() override {}
    CopyOwner& copy;
  };

  static constexpr std::uint64_t kLookAgain = 0;  ///< no version
  void fire(std::uint64_t version) override;
  void add(Kernel& kernel);
  void place(const Kernel& kernel);
  void end(Kernel& kernel);
  void go_on(Kernel& kernel);
  void share();
  std::uint32_t usable(const Kernel& kernel, std::uint32_t free_sms) const;
  std::uint32_t held_sms() const;
  Job& start_job(Kernel& kernel, std::uint32_t sms, std::uint32_t waves);
  void start_last(Kernel& kernel, std::uint32_t sms);
  std::uint32_t give_to_stay(Kernel& kernel, std::uint32_t free_sms);
  void begin_to_stay(Kernel& kernel, std::uint32_t sms) const;
  std::uint32_t give_own_tiles(Kernel& kernel, std::uint32_t free_sms);
  std::uint32_t give_blocks(Kernel& kernel, std::uint32_t free_sms);
  std::uint32_t give_share(Kernel& kernel, std::uint32_t free_sms);
  bool in_last_blocks(const Job& job) const;
  void look_again_at_last_blocks();
  void shorten_waves(int priority);
  Duration wait_for_places(Kernel& kernel) const;
  double speed_of(const Job& job) const;
  void share_memory_bandwidth();
  Duration beside_products(const Kernel& kernel) const;
  void slow_down(Kernel& kernel) const;
  double slowness();
  void set_clock();
  void slow_nccl(double memory_use);
  double demand(const Job& job) const;
  Duration left(const Job& job) const;
  void progress(Job& job);
  void update(Job& job, double speed);
  CopyEngine& copy_engine(std::uint32_t kind);

  Engine& engine_;
  DeviceLimits limits_;
  Clock clock_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  ///< by priority, then arrival
  std::vector<std::unique_ptr<Kernel>> spare_;    ///< for the next ones
  std::vector<Job> jobs_;
  std::vector<Waiting> waiting_;
  KernelOwner* waited_ = nullptr;  ///< whose last kernel waited for its places, and its end
  TimePoint waited_until_{};
  std::uint64_t next_version_ = 0;
  TimePoint looks_again_{};    ///< at the SMs that a kernel's last blocks leave
  std::uint64_t started_ = 0;  ///< kernels
  double memory_use_ = 0;      ///< that NCCL's link was set for
  double memory_used_ = 0;     ///< by kernels, of its bandwidth
  std::vector<CopyEngine> copy_engines_;
  Queue<ExclusiveCopy> exclusive_copies_;
};

}  // namespace foretrace::sim
