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
#include "scenarios/base/text/print.h"

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

std::string cells_of(const QuickTime& time, bool rotated) {
  return fmt::format(",{},{},{:.3f},{:.0f}", rotated ? "rotated" : "same",
                     time.in_graph ? "graph" : "stream", time.us, time.sm_clock_mhz);
}

/// What captures and times products, and the lines about them so far.
class Lister {
 public:
  Lister(const std::vector<Shape>& shapes, const ListOptions& options)
      : gpu_{properties_of(options.device)}, rotated_{options.rotated} {
    if (options.timed) {
      timer_ = std::make_unique<QuickTimer>(stream_, cublas_, shapes, options.rotated);
    }
    text_ = fmt::format(
        "# {}, {} SMs, cuBLAS {}\n{},kernels,kernel,grid_x,grid_y,grid_z,threads,cluster_x,"
        "cluster_y,blocks_per_sm{}\n",
        gpu_.name, gpu_.multiProcessorCount, ProductCublas::version(), kShapeColumns,
        timer_ ? ",operands,timed_by,us,sm_clock_mhz" : "");
  }

  /// Throws ShapeError when cuBLAS refuses it.
  void add(const Shape& shape) {
    const CapturedGraph one{stream_, [&] {
                              cublas_.multiply(shape, memory_.operand(0), memory_.operand(1),
                                               memory_.operand(2));
                            }};
    const auto launched = kernels_.of(one.graph());
    if (launched.empty()) throw ShapeError{"no kernel is launched"};
    text_ += row_of(shape, launched);
    text_ += (timer_ ? cells_of(timer_->time(shape), rotated_) : "") + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  cudaDeviceProp gpu_;  // first: it makes the device the thread's
  bool rotated_;
  OwnStream stream_;
  ProductCublas cublas_{stream_};
  Anywhere memory_;
  CapturedKernels kernels_;
  std::unique_ptr<QuickTimer> timer_;
  std::string text_;
};

/// Until the time is over.
ListedChoices list_all(Lister& lister, const std::vector<Shape>& shapes, double seconds) {
  constexpr std::size_t kNamed = 10;
  ListedChoices listed;
  const auto begin = std::chrono::steady_clock::now();
  for (const Shape& shape : shapes) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    if (spent.count() > seconds) break;
    try {
      lister.add(shape);
      ++listed.products;
    } catch (const ShapeError& error) {
      if (++listed.refused <= kNamed) {
        print_error("not listed: {}: {}\n", key_of(shape), error.what());
      }
    }
  }
  return listed;
}

}  // namespace

ListedChoices list_choices(const std::vector<Shape>& shapes, const ListOptions& options,
                           const std::filesystem::path& output) {
  Lister lister{shapes, options};
  ListedChoices listed;
  try {
    listed = list_all(lister, shapes, options.seconds);
  } catch (...) {  // minutes of measuring: what there is is kept
    write_file(output, lister.text(), Over::Anything);
    throw;
  }
  write_file(output, lister.text(), Over::Anything);
  return listed;
}

}  // namespace foretrace::hw
