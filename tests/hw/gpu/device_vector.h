#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "hw/cuda/cuda_check.h"

namespace foretrace::hw {

/// Device memory with a host copy to and from.
template <class T>
class DeviceVector {
 public:
  explicit DeviceVector(const std::vector<T>& values) : size_{values.size()} {
    cuda_check(cudaMalloc(&data_, size_ * sizeof(T)));
    cuda_check(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceVector() { cuda_ignore(cudaFree(data_)); }
  DeviceVector(const DeviceVector&) = delete;
  DeviceVector& operator=(const DeviceVector&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  std::vector<T> read() const {
    std::vector<T> values(size_);
    cuda_check(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  std::size_t size_;
  void* data_ = nullptr;
};

}  // namespace foretrace::hw
