// Owns one CUDA graph of the program: captured from streams, instantiated, launched.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "hw/trace/records.h"

namespace foretrace::hw {

/// Captured again in every pass; a second capture in the same pass replaces the first. The graph
/// remembers its launches, because what runs in a graph cannot know which launch it belongs to.
class Graph {
 public:
  Graph() = default;
  ~Graph() { reset(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void begin_capture(cudaStream_t stream) const;
  /// cudaStreamEndCapture and cudaGraphInstantiate.
  void end_capture(cudaStream_t stream);
  void upload(cudaStream_t stream) const;
  void launch(cudaStream_t stream, Execution execution);
  /// Forgets everything; what still runs of it ends first (cudaGraphExecDestroy).
  void reset();

  bool is_captured() const { return executable_ != nullptr; }
  /// How often it was captured since the last reset: the number of a capture that is under way.
  std::uint32_t captures() const { return captures_; }
  /// The launches of a capture, in order; they run in that order, too.
  std::vector<Execution> launches(std::uint32_t capture) const;

 private:
  struct Launch {
    std::uint32_t capture;
    Execution execution;
  };
  cudaGraphExec_t executable_ = nullptr;
  std::uint32_t captures_ = 0;
  std::mutex mutex_;  ///< CUDA takes one call on an executable graph at a time
  std::vector<Launch> launches_;
};

}  // namespace foretrace::hw
