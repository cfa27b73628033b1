// Kineto's words for our operations.
#pragma once

#include <string>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// "cudaMemcpyAsync"; our own word for what is no CUDA call.
std::string cuda_call_name(const OpRow& op);

struct KinetoActivity {
  std::string category;  ///< "kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"; empty: not shown
  std::string name;      ///< "Memcpy HtoD (Pinned -> Device)"
};
/// What a stream does for the operation.
KinetoActivity stream_activity(const OpRow& op, const SpanDetail& detail);

}  // namespace foretrace
