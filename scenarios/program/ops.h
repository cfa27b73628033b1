// The closed set of operations, named after the CUDA and NCCL calls that hw/ makes for them.
//
// What an operation means is written here, once; both executors implement exactly this. "Returns"
// is about the host thread, "begins" and "ends" about the device. Sizes and durations may depend
// on loop indices and on the process (Expr), everything else is fixed when the scenario is read.
// Those with blocks of others stand here; the rest by family: work_ops.h, order_ops.h, nccl_ops.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "scenarios/program/ids.h"
#include "scenarios/program/nccl_ops.h"
#include "scenarios/program/order_ops.h"
#include "scenarios/program/work_ops.h"

namespace foretrace {

struct Op;
using Block = std::vector<Op>;

// clang-format off: one line per operation reads as a table

// ---- blocks ----------------------------------------------------------------------------------

/// Runs `ops` `times` times; adds one loop index. `for_each` reads as this too.
struct Repeat {
  std::uint64_t times = 0;
  Block ops;
};
/// A named interval of the host thread, around its operations; `per` divides the reported time.
struct Region {
  std::string name;
  std::uint64_t per = 1;
  Block ops;
  bool issue_only = false;  ///< meant to end while what it issues may still run
};
/// ncclGroupStart ... ncclGroupEnd: the NCCL operations inside are issued together at the end.
struct NcclGroup {
  Block ops;
};
/// cudaStreamBeginCapture on `stream` (relaxed mode) ... cudaStreamEndCapture,
/// cudaGraphInstantiate: what is queued inside becomes the graph and does not run yet. Other
/// streams join by waiting for an event recorded inside, and must be joined again before the end.
struct GraphCapture {
  GraphRef graph;
  StreamRef stream;
  Block ops;
};
/// cudaGraphLaunch: one call, then everything that was captured, in the order of its dependencies.
/// All its device spans carry this operation.
struct GraphLaunch {
  GraphRef graph;
  StreamRef stream;
};

// clang-format on

using AnyOp =
    std::variant<HostCompute, HostFill, HostBarrier, HostSignal, HostWait, FrameworkCall,       //
                 HostParallel, ReadFile,                                                        //
                 Spin, Gemm, Elementwise, Reduction, LibraryKernel, HostFunc, Fault,            //
                 MemcpyAsync, Memcpy, MemsetAsync, Memset, EnablePeerAccess,                    //
                 EventRecord, StreamWaitEvent, EventSynchronize, EventQuery, EventElapsedTime,  //
                 EventWaitFor, StreamSynchronize, StreamQuery, DeviceSynchronize,               //
                 Malloc, Free, MallocAsync, FreeAsync, HostAlloc, HostFree, HostRegister,       //
                 HostUnregister,                                                                //
                 NcclCommInit, NcclCommDestroy, NcclCommRegister, NcclCommDeregister,           //
                 NcclCollective, NcclSend, NcclRecv,                                            //
                 GraphLaunch, Repeat, Region, NcclGroup, GraphCapture>;

/// One operation with its arguments. Its copies and its end are compiled once, in ops.cc: of so
/// many alternatives they cost every file that holds a Block more than anything else did.
struct OpKind : AnyOp {
  OpKind();
  template <class One>
  requires(!std::same_as<std::remove_cvref_t<One>, OpKind>) OpKind(One&& one)
      : AnyOp(std::forward<One>(one)) {}  // NOLINT: as of the variant
  OpKind(const OpKind& other);
  OpKind(OpKind&& other) noexcept;
  OpKind& operator=(const OpKind& other);
  OpKind& operator=(OpKind&& other) noexcept;
  ~OpKind();
};

struct Op {
  OpId id;            ///< position in the file's order of operations, blocks included
  std::string label;  ///< the scenario's `id`; empty when it gives none
  int line{};
  int column{};
  OpKind kind;
  bool lowered = false;  ///< one of several that an operation of the file reads as
};

/// Its time is a result although it is no region: an event_elapsed_time with an id.
bool is_timed(const Op& op);

/// The scenario's word for the operation: "memcpy_async", "nccl_all_reduce".
std::string kind_name(const OpKind& kind);

/// The operations inside a block; null for every other operation.
const Block* block_of(const OpKind& kind);

/// std::visit(Overloaded{[](const EventRecord&) {...}, ...}, op.kind) with no default branch:
/// a new operation then fails to compile in both executors until both handle it.
template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

}  // namespace foretrace
