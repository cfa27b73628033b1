// How long a kernel takes alone on an idle GPU, and what it occupies while it runs. Pure functions
// of the machine's parameters, which the Reading notes.
#pragma once

#include <cstdint>
#include <span>

#include "models/cost/products/product.h"
#include "models/machine/reading.h"

namespace foretrace::cost {

/// A kernel whose blocks occupy an SM each and cannot be interrupted.
struct Waves {
  std::uint32_t blocks =
      0;  ///< 0: so many and so short that it takes and gives back SMs at any moment
  Duration block_time{};
  /// Where the last wave is unlike the others, or leaves other room: its time (else 0), on how many
  /// of its SMs it ends early, and its time there.
  Duration last_time{};
  std::uint32_t early_sms = 0;
  Duration early_time{};
  Duration again{};  ///< what blocks take beyond it that begin after the kernel has begun
  bool keeps_its_sms =
      false;              ///< one block on each SM for all waves, whatever the other's priority
  bool staggers = false;  ///< a block for each tile, several on an SM at once
};

/// What a kernel leaves to others, and how it gets a place beside them.
struct Room {
  double pair_loss = 0;  ///< SMs it cannot use beside each one that a NCCL kernel holds
  Duration drain{};      ///< what a kernel of higher priority waits for the end of a block
  /// The same of a kernel whose blocks take all registers of an SM: the small blocks of this one
  /// follow each other on every SM, and seldom does all of one become free.
  Duration drain_of_all{};
  /// So long before its end all of its blocks have begun, and other memory-bound ones find room.
  Duration last_blocks{};
  /// Of higher priority beside such a kernel, it waits for its place, and so many times as long for
  /// its data.
  double data_waits = 0;
  bool fills_an_sm = false;
  bool leaves_room = false;  ///< on its SMs, for kernels of the driver
  bool takes_no_sm = false;  ///< of those that kernels hold which leave room
};

/// What running such kernels for long does to the GPU's clock.
struct ClockLoss {
  double lost = 0;   ///< the part of the rested clock that the GPU loses
  double share = 0;  ///< how much longer this kernel takes for each part that is lost; 1: as much
  /// The clock goes as slowly towards `lost` when it rises as when it falls, and that may be below
  /// 0: power beneath the limit, which makes room for what comes after.
  bool averages = false;
};

/// A kernel as the device sees it.
struct KernelCost {
  Duration alone;         ///< on an idle GPU
  std::uint32_t sms = 1;  ///< SMs it fills
  /// From so many SMs on it is as fast as on all, since the memory holds it up; fewer make it
  /// slower in proportion. 0: all that it fills.
  std::uint32_t enough_sms = 0;
  std::uint32_t kernels = 1;        ///< that one call launches
  double call_share = 1;            ///< what the call costs the host, beside the usual one
  double hbm_bytes_per_second = 0;  ///< device memory traffic while it runs alone
  Duration then{};                  ///< of the second one, which waits for SMs of its own
  Waves waves;
  Room room;
  ClockLoss clock;
};

/// `spin`'s blocks of one SM each, in waves of at most all SMs, for `duration`, less where a
/// what-if makes faster what it scales with.
KernelCost spin_cost(Reading& read, const Spin& spin, Duration duration);

/// A product through cuBLAS, operands packed.
struct Product {
  DataType type = DataType::Float32;
  bool tf32 = false;
  Scales scales = Scales::Tensor;
  DataType result = DataType::Float32;
  std::int64_t m = 1, n = 1, k = 1;
  bool transposes_a = false, transposes_b = false;
  std::int64_t batch = 1;
  bool accumulates = false;  ///< c is read too
  products::Contents contents = products::Contents::Random;
  /// How much of the operands the level-2 cache still has, at most, by the memory that went through
  /// it since: in eighths.
  int cached_eighths = 8;
  bool fresh = false;     ///< an operand was written since it was last read
  bool in_graph = false;  ///< a node of a graph
  friend auto operator<=>(const Product&, const Product&) = default;
};

/// By the plans that the library may choose (models/cost/products).
KernelCost gemm_cost(Reading& read, const Product& product);

/// A kernel goes once through an array, reading or writing it. `distance`: the bytes of different
/// memory that its GPU has gone through since the array's last use began, the kernel's own
/// included.
struct Pass {
  double bytes = 0;
  double distance = 0;
  bool reread = false;  ///< kernels have only read the array since it was written
  bool fresh = false;   ///< the last of them wrote it
};

/// What of the array the level-2 cache does not hold any more.
double missing_bytes(Reading& read, const Pass& pass);

/// How much of what these passes read the level-2 cache has, in eighths (Product).
int cached_eighths(Reading& read, std::span<const Pass> passes);

/// Whether one of these arrays was written last, not read.
bool any_fresh(std::span<const Pass> passes);

/// Goes through these arrays: reads all but the last, which it writes.
KernelCost elementwise_cost(Reading& read, std::span<const Pass> passes);

/// Reads this array. What was read before lies in both halves of the level-2 cache, what was
/// written in one of them.
KernelCost reduction_cost(Reading& read, const Pass& pass);

/// Where a memset stands: called on a stream, or a node of a graph, behind another small one or
/// not.
enum class MemsetIn : std::uint8_t { Stream, Graph, GraphBehindSmall };
KernelCost memset_cost(Reading& read, const Pass& pass, MemsetIn place = MemsetIn::Stream);
/// No kernel: what reads the stream's commands writes it itself.
bool is_small_memset(double bytes);

/// Host memory is set by a kernel too, across PCIe.
KernelCost host_memset_cost(Reading& read, Bytes size);

/// Kernels that the driver launches for a copy inside one device: one, and one for what is beyond
/// whole pages of 4 KiB. Below 1 MiB that was not looked for
/// (hw/laboratory/causes/copies_within.yaml).
std::uint32_t device_copy_kernels(Bytes size);

/// The same kernel where so many of its bytes lie on another GPU, at least: it takes as long as
/// NVLink needs for them, and moves the less of its own memory.
KernelCost over_nvlink(Reading& read, KernelCost cost, double bytes);

/// A copy inside one device: a kernel that reads the one and writes the other.
KernelCost device_copy_cost(Reading& read, const Pass& from, const Pass& to);

}  // namespace foretrace::cost
