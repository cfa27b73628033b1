#include "hw/products/choices.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>

#include "hw/cuda/cuda_check.h"
#include "hw/products/captured_kernels.h"
#include "hw/products/gpu.h"
#include "hw/products/product_call.h"
#include "hw/products/product_table.h"
#include "hw/products/quick_timer.h"
#include "hw/products/shape_error.h"
#include "reports/timeline/write_file.h"
#include "scenarios/text/print.h"

namespace foretrace::hw {
namespace {

/// Nothing reads or writes it: a captured product does not run. Aligned as cudaMalloc aligns.
class Anywhere {
 public:
  Anywhere() { cuda_check(cudaMalloc(&data_, kEach * 3)); }
  ~Anywhere() { cuda_ignore(cudaFree(data_)); }
  Anywhere(const Anywhere&) = delete;
  Anywhere& operator=(const Anywhere&) = delete;
  void* operand(std::size_t i) const { return static_cast<char*>(data_) + i * kEach; }

 private:
  static constexpr std::size_t kEach = std::size_t{64} << 20;
  void* data_{};
};

std::string row_of(const Shape& shape, const std::vector<KernelLaunch>& kernels) {
  const KernelLaunch& main = main_kernel(kernels);
  return fmt::format("{},{},{},{},{},{},{},{},{},{}", key_of(shape), kernels.size(),
                     cell(main.name), main.grid[0], main.grid[1], main.grid[2], main.block[0],
                     main.cluster[0], main.cluster[1], main.blocks_per_sm);
}

std::string cells_of(const QuickTime& time) {
  return fmt::format(",{},{:.3f},{:.0f}", time.in_graph ? "graph" : "stream", time.us,
                     time.sm_clock_mhz);
}

}  // namespace

ListedChoices list_choices(const std::vector<Shape>& shapes, const ListOptions& options,
                           const std::filesystem::path& output) {
  constexpr std::size_t kNamed = 10;
  const cudaDeviceProp gpu = properties_of(options.device);
  const OwnStream stream;
  const ProductCublas cublas{stream};
  const Anywhere memory;
  const CapturedKernels kernels;
  std::unique_ptr<QuickTimer> timer;
  if (options.timed) timer = std::make_unique<QuickTimer>(stream, cublas, shapes);
  std::string text = fmt::format(
      "# {}, {} SMs, cuBLAS {}\n{},kernels,kernel,grid_x,grid_y,grid_z,threads,cluster_x,"
      "cluster_y,blocks_per_sm{}\n",
      gpu.name, gpu.multiProcessorCount, ProductCublas::version(), kShapeColumns,
      options.timed ? ",timed_by,us,sm_clock_mhz" : "");
  ListedChoices listed;
  const auto begin = std::chrono::steady_clock::now();
  try {
    for (const Shape& shape : shapes) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      if (spent.count() > options.seconds) break;
      try {
        const CapturedGraph one{stream, [&] {
                                  cublas.multiply(shape, memory.operand(0), memory.operand(1),
                                                  memory.operand(2));
                                }};
        const auto launched = kernels.of(one.graph());
        if (launched.empty()) throw ShapeError{"no kernel is launched"};
        text += row_of(shape, launched) + (timer ? cells_of(timer->time(shape)) : "") + "\n";
        ++listed.products;
      } catch (const ShapeError& error) {
        if (++listed.refused <= kNamed) {
          print_error("not listed: {}: {}\n", key_of(shape), error.what());
        }
      }
    }
  } catch (...) {  // minutes of measuring: what there is is kept
    write_file(output, text, Over::Anything);
    throw;
  }
  write_file(output, text, Over::Anything);
  return listed;
}

}  // namespace foretrace::hw
