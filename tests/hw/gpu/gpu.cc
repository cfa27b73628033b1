#include "tests/hw/gpu/gpu.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace foretrace::hw {

std::string lacks_gpus(int count) {
  int found = 0;
  const cudaError_t error = cudaGetDeviceCount(&found);
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return fmt::format("no GPU: {}", cudaGetErrorString(error));
  }
  return found >= count ? "" : fmt::format("{} GPUs needed, {} found", count, found);
}

TestRun::TestRun(const Program& program)
    : run_{
          program,
          alone_,
          0,
          std::chrono::seconds{20},
          {[&program](const ProcessReport& report) {
             for (const auto& line : explain_hang(program, {report})) {
               fmt::print(stderr, "{}\n", line);
             }
           },
           [] { std::_Exit(1); }, [](const std::string& what) { fmt::print(stderr, "{}\n", what); },
           [] { std::_Exit(1); },
           [](const std::string& what) {
             fmt::print(stderr, "{}\n", what);
             std::_Exit(4);
           }}} {}

}  // namespace foretrace::hw
