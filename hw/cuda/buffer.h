// Owns the memory of one declared buffer, and knows what the program did to it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "hw/cuda/kernels.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

/// Device memory is cudaMalloc's or, declared so, ncclMemAlloc's, pinned memory cudaHostAlloc's,
/// pageable memory anonymous pages as malloc takes them for large blocks.
class Buffer {
 public:
  Buffer(const foretrace::Buffer& declared, int ordinal)
      : declared_{&declared}, ordinal_{ordinal} {}
  ~Buffer() { release(); }
  Buffer(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer& operator=(Buffer&&) = delete;

  void allocate();
  /// From a stream's memory pool (cudaMallocAsync).
  void allocate_async(cudaStream_t stream);
  /// What the program's free, host_free or free_async does; an error when it holds no memory.
  void free();
  void free_async(cudaStream_t stream);
  /// Pins pageable memory, at most until the end of the pass.
  void register_host();
  /// What the program's host_unregister does; an error when it is not registered.
  void unregister_by_program();

  /// Whatever it holds is given back, errors ignored: between passes and at the end.
  void release();
  /// Ends register_host.
  void unregister_host();

  bool holds_memory() const { return data_ != nullptr; }
  void* data() const { return data_; }
  std::size_t bytes() const { return declared_->size.count; }
  int ordinal() const { return ordinal_; }  ///< of device memory
  bool on_device() const { return declared_->memory == MemoryKind::Device; }
  const foretrace::Buffer& declared() const { return *declared_; }

 private:
  const foretrace::Buffer* declared_;
  int ordinal_;
  void* data_ = nullptr;
  bool registered_ = false;
};

/// Fills with random elements or zeros. Host memory is touched by this thread, which places it.
void fill(Buffer& buffer, Element type, std::uint32_t seed);

}  // namespace foretrace::hw
