// What host threads pay: for calls into CUDA and NCCL, for waking up, and for what they do with
// memory themselves. Pure functions of the machine's parameters, which the Reading notes.
#pragma once

#include <cstdint>
#include <optional>

#include "models/machine/reading.h"

namespace foretrace::cost {

/// One call, and the circumstances in which a thread makes it.
struct Call {
  Param param{};                  ///< what the call takes when it is queued
  bool is_captured = false;       ///< noted in a CUDA graph instead
  bool is_inner = false;          ///< made inside a call of torch.distributed, not from Python
  bool is_first = false;          ///< of its kind in the pass
  bool switches_device = false;   ///< for another device than the call before
  bool finds_later_work = false;  ///< asks for an event that has completed, beside later work
  std::uint32_t others = 0;       ///< host threads whose calls hold this one up
  std::uint32_t processes = 0;    ///< other processes of the program
  std::uint32_t kernels = 1;      ///< that it launches
  double share = 1;               ///< of what such a call usually takes
  friend auto operator<=>(const Call&, const Call&) = default;
};

/// From a call to its return, when it does not wait for anything. The first call of its kind has to
/// fetch its code and data into the caches; threads that call the driver at once hold each other
/// up.
Duration call_time(Reading& read, const Call& call);

/// Of a launch in each of so many processes at once, which foretrace-hw measures beside a program's
/// repetitions; nothing where the machine does not know, or PyTorch's call is meant.
std::optional<Duration> launch_time(const Machine& machine, std::uint32_t processes);

/// What `cost` of calling takes longer because of `others` threads.
Duration contention(Reading& read, Duration cost, std::uint32_t others);

/// The largest cudaMemsetAsync of device memory that launches no kernel.
Bytes small_memset();
/// cudaMemsetAsync of device memory.
Duration memset_time(Reading& read, const Call& call, Bytes size);

/// A call whose time grows with a size: cudaMalloc, cudaHostAlloc, ... `rate` is in bytes/s.
Duration sized_call_time(Reading& read, const Call& call, Param rate, Bytes size);

/// What a change of the GPU's mappings takes longer because `others` processes of the node change
/// theirs: a share of it for each. Pools that grow and shrink took 0.9 of the model's time in
/// programs of one process, 1.35 in those of two (blind rounds 1 to 3).
Duration beside_processes(Reading& read, Duration time, std::uint32_t others);

/// cudaMallocAsync: from what the pool has, or after it has grown by so much.
Duration malloc_async_time(Reading& read, const Call& call, Bytes grown, std::uint32_t others = 0);
/// What a synchronization takes longer that gives so much of the pool's memory back.
Duration pool_trim_time(Reading& read, Bytes given_back, std::uint32_t others = 0);
/// Until memory that was freed may be given out again.
Duration clear_time(Reading& read, Bytes freed);

/// What a waiting thread waits for.
enum class Wait : std::uint8_t { Device, Event, Barrier, Signal };
/// From the end of what it waits for to its return.
Duration wake_time(Reading& read, Wait wait);

/// cudaDeviceEnablePeerAccess: again, it only makes the device current.
Duration enable_peer_time(Reading& read, bool is_done, bool switches_device);

/// From one poll of an event to the next: `interval` apart, or as fast as the query returns.
Duration poll_time(Reading& read, const Call& query, Duration interval);

/// What the first touch of `fresh` bytes of new memory takes beyond the writing.
Duration touch_time(Reading& read, Bytes fresh);

/// cudaHostRegister of so much, `fresh` of it in pages that nobody has touched: it makes them.
Duration register_time(Reading& read, const Call& call, Bytes size, Bytes fresh);

/// Writes `size` of random numbers, `fresh` of them into pages that were never touched.
Duration fill_time(Reading& read, Bytes size, Bytes fresh);

// ---- CUDA graphs

/// Notes so many calls in a graph.
Duration capture_time(Reading& read, std::size_t calls);
/// Notes a NCCL call, or a group of so many, in a graph: NCCL plans it all the same, and gives the
/// graph what it must keep.
Duration nccl_capture_time(Reading& read, std::size_t calls);
/// The end of a capture with cudaGraphInstantiate.
Duration graph_instantiate_time(Reading& read, std::uint32_t nodes);
/// cudaGraphLaunch.
Duration graph_launch_time(Reading& read, const Call& call, std::uint32_t nodes);

// ---- host functions

/// From when a stream reaches a host function to the function's begin. `follows`: directly behind
/// another one. Else the driver's thread looks whether the stream has come so far, and sleeps
/// longer and longer between looks: `waited` is for how long it had looked in vain. On H200s, a
/// function behind a kernel of 400 us begins 40 to 580 us after it.
Duration host_function_delay(Reading& read, bool follows, Duration waited);

}  // namespace foretrace::cost
