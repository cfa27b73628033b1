#include "hw/cuda/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <random>
#include <utility>
#include <vector>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/device_guard.h"
#include "hw/cuda/nccl_check.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::hw {
namespace {

void* map_pages(std::size_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    throw IoError{"cannot map " + std::to_string(bytes) +
                  " B of host memory: " + std::strerror(errno)};
  }
  return pages;
}

void require_memory(const Buffer& buffer, const char* what) {
  if (!buffer.holds_memory()) {
    throw std::runtime_error{"buffer " + buffer.declared().name + ": " + what +
                             " of memory that is not allocated"};
  }
}

}  // namespace

Buffer::Buffer(Buffer&& other) noexcept
    : declared_{other.declared_},
      ordinal_{other.ordinal_},
      data_{std::exchange(other.data_, nullptr)},
      registered_{std::exchange(other.registered_, false)} {}

void Buffer::allocate() {
  if (holds_memory()) {
    throw std::runtime_error{"buffer " + declared_->name + " is allocated twice"};
  }
  switch (declared_->memory) {
    case MemoryKind::Device:
      use_device(ordinal_);
      if (declared_->by_nccl) {
        nccl_check(ncclMemAlloc(&data_, bytes()));
      } else {
        cuda_check(cudaMalloc(&data_, bytes()));
      }
      return;
    case MemoryKind::Pinned:
      cuda_check(cudaHostAlloc(&data_, bytes(), cudaHostAllocPortable));
      return;
    case MemoryKind::Pageable:
    case MemoryKind::FreshPageable:
      data_ = map_pages(bytes());
      return;
  }
}

void Buffer::allocate_async(cudaStream_t stream) {
  if (holds_memory()) {
    throw std::runtime_error{"buffer " + declared_->name + " is allocated twice"};
  }
  cuda_check(cudaMallocAsync(&data_, bytes(), stream));
}

void Buffer::free() {
  require_memory(*this, "free");
  switch (declared_->memory) {
    case MemoryKind::Device:
      use_device(ordinal_);
      if (declared_->by_nccl) {
        nccl_check(ncclMemFree(data_));
      } else {
        cuda_check(cudaFree(data_));
      }
      break;
    case MemoryKind::Pinned:
      cuda_check(cudaFreeHost(data_));
      break;
    case MemoryKind::Pageable:
    case MemoryKind::FreshPageable:
      unregister_host();
      munmap(data_, bytes());
      break;
  }
  data_ = nullptr;
}

void Buffer::free_async(cudaStream_t stream) {
  require_memory(*this, "free_async");
  cuda_check(cudaFreeAsync(std::exchange(data_, nullptr), stream));
}

void Buffer::register_host() {
  require_memory(*this, "host_register");
  cuda_check(cudaHostRegister(data_, bytes(), cudaHostRegisterPortable));
  registered_ = true;
}

void Buffer::unregister_by_program() {
  cuda_check(cudaHostUnregister(data_));
  registered_ = false;
}

void Buffer::unregister_host() {
  if (std::exchange(registered_, false)) cuda_ignore(cudaHostUnregister(data_));
}

void Buffer::release() {
  if (!holds_memory()) return;
  switch (declared_->memory) {
    case MemoryKind::Device:
      // Unified addressing: the pointer tells its device.
      if (declared_->by_nccl) {
        ncclMemFree(data_);
      } else {
        cuda_ignore(cudaFree(data_));
      }
      break;
    case MemoryKind::Pinned:
      cuda_ignore(cudaFreeHost(data_));
      break;
    case MemoryKind::Pageable:
    case MemoryKind::FreshPageable:
      unregister_host();
      munmap(data_, bytes());
      break;
  }
  data_ = nullptr;
}

void fill(Buffer& buffer, Element type, std::uint32_t seed) {
  if (!buffer.holds_memory() || buffer.bytes() == 0) return;
  const foretrace::Contents contents = buffer.declared().contents;
  const bool zeros = contents == foretrace::Contents::Zeros;
  const auto random = [&](void* data, std::size_t bytes) {
    return launch_random_fill(
        cudaStreamLegacy, type, data, bytes, seed,
        contents == foretrace::Contents::Normal ? Distribution::Normal : Distribution::Uniform);
  };
  if (buffer.on_device()) {
    use_device(buffer.ordinal());
    cuda_check(zeros ? cudaMemset(buffer.data(), 0, buffer.bytes())
                     : random(buffer.data(), buffer.bytes()));
    return;
  }
  auto* bytes = static_cast<std::byte*>(buffer.data());
  if (zeros) {
    std::memset(bytes, 0, buffer.bytes());
    return;
  }
  // Random bytes come from the GPU, some megabytes at a time, and are repeated: they only have to
  // be as incompressible as real data.
  constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
  const std::size_t piece = std::min(buffer.bytes(), kPieceBytes);
  void* on_device = nullptr;
  cuda_check(cudaMalloc(&on_device, piece));
  cudaError_t error = random(on_device, piece);
  if (error == cudaSuccess) error = cudaMemcpy(bytes, on_device, piece, cudaMemcpyDeviceToHost);
  cuda_ignore(cudaFree(on_device));
  cuda_check(error);
  for (std::size_t done = piece; done < buffer.bytes(); done += piece) {
    std::memcpy(bytes + done, bytes, std::min(piece, buffer.bytes() - done));
  }
}

}  // namespace foretrace::hw
