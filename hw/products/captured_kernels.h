// Which kernels a product launches, read from a captured graph: no profiler is needed.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <vector>

#include "hw/products/product_table.h"

namespace foretrace::hw {

/// The driver's functions that look into a graph; the runtime's cannot name another library's
/// kernels. Loaded from libcuda, which the runtime has loaded already.
class CapturedKernels {
 public:
  CapturedKernels();
  ~CapturedKernels();
  CapturedKernels(const CapturedKernels&) = delete;
  CapturedKernels& operator=(const CapturedKernels&) = delete;

  /// The kernel nodes of a graph in the order they were captured. Throws std::runtime_error.
  std::vector<KernelLaunch> of(cudaGraph_t graph) const;

 private:
  void* symbol(const char* name) const;

  void* library_{};
};

/// A captured graph, destroyed with this. Throws what `calls` throws, with the capture ended.
class CapturedGraph {
 public:
  CapturedGraph(cudaStream_t stream, const std::function<void()>& calls);
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  cudaGraph_t graph() const { return graph_; }
  /// Made and uploaded at the first call.
  cudaGraphExec_t executable(cudaStream_t stream);

 private:
  cudaGraph_t graph_{};
  cudaGraphExec_t executable_{};
};

}  // namespace foretrace::hw
