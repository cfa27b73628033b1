#include "hw/cuda/graph.h"

#include <utility>

#include "hw/cuda/cuda_check.h"

namespace foretrace::hw {

void Graph::begin_capture(cudaStream_t stream) const {
  cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
}

void Graph::end_capture(cudaStream_t stream) {
  cudaGraph_t captured = nullptr;
  cuda_check(cudaStreamEndCapture(stream, &captured));
  cudaGraphExec_t executable = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&executable, captured, 0);
  cuda_ignore(cudaGraphDestroy(captured));  // the executable one is a copy
  cuda_check(error);
  cudaGraphExec_t replaced = std::exchange(executable_, executable);
  ++captures_;
  if (replaced != nullptr) cuda_check(cudaGraphExecDestroy(replaced));
}

void Graph::upload(cudaStream_t stream) const { cuda_check(cudaGraphUpload(executable_, stream)); }

void Graph::launch(cudaStream_t stream, Execution execution) {
  const std::scoped_lock lock{mutex_};
  cuda_check(cudaGraphLaunch(executable_, stream));
  launches_.push_back({captures_ - 1, execution});
}

void Graph::reset() {
  if (is_captured()) cuda_ignore(cudaGraphExecDestroy(std::exchange(executable_, nullptr)));
  captures_ = 0;
  launches_.clear();  // keeps its capacity
}

std::vector<Execution> Graph::launches(std::uint32_t capture) const {
  std::vector<Execution> result;
  for (const Launch& launch : launches_) {
    if (launch.capture == capture) result.push_back(launch.execution);
  }
  return result;
}

}  // namespace foretrace::hw
