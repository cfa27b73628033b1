// Operations that are work: the host's, kernels and copies.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scenarios/program/captured_shape.h"
#include "scenarios/program/ids.h"
#include "scenarios/program/library_work.h"

namespace foretrace {

enum class DataType : std::uint8_t {
  Float16,
  BFloat16,
  Float32,
  Float64,
  Int8,
  Int32,
  Int64,
  Float8E4M3,
  Float8E5M2,
  Float4E2M1
};
enum class RedOp : std::uint8_t { Sum, Prod, Min, Max, Avg };

/// Bytes of one element.
Bytes size_of(DataType type);

// clang-format off: one line per operation reads as a table

// ---- host ----------------------------------------------------------------------------------

/// The host thread is busy for `duration`.
struct HostCompute {
  DurationExpr duration;
};
/// The host thread writes uniform random float32 into the host buffer, as torch.rand on the CPU
/// with one thread does; first touch of fresh memory included.
struct HostFill {
  BufferRef dst;
  BytesExpr size;
};
/// `threads` threads of the host (0: one for each core that the process may use) share the work
/// evenly, as an operator of PyTorch's on the CPU does: `flops` float32 operations, multiply-adds
/// of vectors, beside `bytes` of host memory read and written, both counted. Returns when the last
/// of them is done. What runs at the same time shares the cores and the memory with it.
struct HostParallel {
  Expr flops;
  BytesExpr bytes;
  std::uint32_t threads = 0;
};
/// The host thread reads `size` bytes of a file into host memory, past the page cache (O_DIRECT).
/// Each thread has a file of its own; all of a node lie on one storage and share it.
struct ReadFile {
  BufferRef dst;
  BytesExpr size;
};
/// The host thread is busy `count` times for as long as the framework's work of this kind takes on
/// the machine (`pytorch.eager.*`). The calls into CUDA stand beside it as operations of their own.
/// No executor has it: hw/ has no framework, in PyTorch its own calls are that work. Both count it.
struct FrameworkCall {
  FrameworkWork work = FrameworkWork::Forward;
  std::uint32_t count = 1;
  std::uint32_t queries =
      0;  ///< calls of CUDA within it that ask or tell: cudaGetDevice and the like
  std::uint32_t loop_us = 0;  ///< us that the reference loop took where this was captured, whose
                              ///< millionths `count` says; 0: as long as on the machine
};
/// Returns when every (process, host thread) whose operations name this barrier has arrived.
struct HostBarrier {
  BarrierId barrier;
};
/// Adds one to a counting semaphore of this process.
struct HostSignal {
  SignalRef signal;
};
/// Returns when the semaphore is positive, and takes one from it.
struct HostWait {
  SignalRef signal;
};

// ---- kernels: return once queued; begin when the stream reaches them and SMs are free ---------

/// What of a machine makes a kernel of captured time faster, for what-ifs only: both executors spin
/// for the duration, which predictions divide by the factor that a what-if gives it.
enum class ScalesWith : std::uint8_t { Nothing, Gemm, Hbm, Pcie };

/// `blocks` thread blocks that each occupy one SM for `duration`.
struct Spin {
  StreamRef stream;
  DurationExpr duration;
  std::uint32_t blocks = 1;
  std::uint32_t of = 0;  ///< so many of a GPU with `of` SMs; on another as large a part; 0: as many
  ScalesWith scales_with = ScalesWith::Nothing;

  /// On a GPU with `sms` SMs, at least one.
  std::uint32_t blocks_on(std::uint32_t sms) const;
};
/// What a product's narrow operands are multiplied by, as cuBLASLt's scale modes have it: a float32
/// for each tensor, row or block of 128 x 128; MX, a byte for each 32 numbers of k; NV, a float8
/// for each 16 of them. Packed is none of cuBLAS's: a's bfloat16 numbers lie in memory in 4 bits, a
/// scale and a zero for each 128 (GPTQ, AWQ), and become 16 bits in the kernel; b's are whole.
enum class Scales : std::uint8_t { Tensor, Row, Square, Mx, Nv, Packed };
/// Of b, where a has these.
constexpr Scales second_scales(Scales scales) {
  return scales == Scales::Packed ? Scales::Tensor : scales;
}
/// c = a * b through cuBLAS: m x n x k, column-major, packed, c apart. Float32 means TF32 off, but
/// for `tf32`. Float8E5M2 is a's type, b is Float8E4M3 then, as a gradient's product has it.
struct Gemm {
  StreamRef stream;
  Expr m, n, k;
  DataType type;
  BufferRef a, b, c;
  bool transpose_a = false, transpose_b = false;  ///< a lies in memory as k x m, b as n x k
  Expr batch{1};           ///< so many products, whose matrices follow each other in memory
  bool adds_to_c = false;  ///< beta is 1: c += a * b
  std::optional<DataType> result = {};  ///< of c, where it is not result_of(type) (product_type.h)
  bool tf32 = false;                    ///< of float32, 10 bits of mantissa are multiplied
  Scales scales = Scales::Tensor;
};
/// Reads `sources` and writes `dst`, `size` bytes of each: none is a fill (torch.rand on the
/// device), one a unary operation (relu), two a binary one (add).
struct Elementwise {
  StreamRef stream;
  std::vector<BufferRef> sources;
  BufferRef dst;
  BytesExpr size;
  DataType type;
};
/// A kernel of a library that is no product, by what it does, computes and moves: `flops` and
/// `bytes` (read and written). It names no buffers: what it computes on is the executor's. hw/ has
/// short kernels of its own for it, and attention by products and a softmax (library_kernels.h);
/// hw/pytorch calls PyTorch's. Attention has the size of its heads in `width`, a norm may
/// have that of its rows.
struct LibraryKernel {
  StreamRef stream;
  KernelKind kernel = KernelKind::Pointwise;
  Expr flops;
  BytesExpr bytes;
  Expr width;
  CapturedShape captured{};
};
/// Reduces `size` bytes of `src` to one element of `dst`.
struct Reduction {
  StreamRef stream;
  BufferRef src, dst;
  BytesExpr size;
  DataType type;
  RedOp op;
};

/// cudaLaunchHostFunc: when the stream reaches it, a thread of the driver runs a function on the
/// host, and the stream goes on when it has returned. The function first takes one from `wait`,
/// then is busy for `duration`, then adds one to `signal`.
struct HostFunc {
  StreamRef stream;
  DurationExpr duration;
  std::optional<SignalRef> wait, signal;
};
/// A kernel that stores to an address that is not mapped. The process's context is lost: a later
/// CUDA call reports the error, and the run fails there (exit code 1).
struct Fault {
  StreamRef stream;
};

// ---- copies: the kind (h2d, d2h, d2d, p2p, h2h) follows from the two buffers ------------------

/// cudaMemcpyAsync. From or to pinned memory it returns once queued; from or to pageable memory
/// the host takes part, as CUDA's "API synchronization behavior" describes.
struct MemcpyAsync {
  StreamRef stream;
  BufferRef src, dst;
  BytesExpr src_offset, dst_offset, size;
};
/// cudaMemcpy on the legacy default stream: returns when the copy has ended (h2d from pageable
/// memory: when the data left the buffer; d2d: does not wait, as CUDA documents).
struct Memcpy {
  BufferRef src, dst;
  BytesExpr src_offset, dst_offset, size;
};
struct MemsetAsync {
  StreamRef stream;
  BufferRef dst;
  BytesExpr size;
};
/// cudaMemset on the legacy default stream: asynchronous unless the memory is host memory.
struct Memset {
  BufferRef dst;
  BytesExpr size;
};
/// `device` may access memory of `peer` directly from here on (cudaDeviceEnablePeerAccess).
struct EnablePeerAccess {
  Expr device, peer;
};

// clang-format on

}  // namespace foretrace
