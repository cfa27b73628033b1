#include "hw/products/product_meter.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <utility>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/device_guard.h"
#include "hw/products/captured_kernels.h"
#include "hw/products/events.h"
#include "hw/products/gpu.h"
#include "hw/products/gpu_sampler.h"
#include "hw/products/load_times.h"
#include "hw/products/operand.h"
#include "hw/products/product_call.h"
#include "hw/products/shape_error.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"

namespace foretrace::hw {
namespace {

using Clock = std::chrono::steady_clock;

/// Below this a call's host time (3 to 6 us) may be what a loop shows: a graph then.
constexpr double kLaunchBoundUs = 15;
/// A timing lasts this long at least: events resolve 0.5 us, and one between products costs 1 us.
constexpr double kTimingUs = 500;
constexpr double kGraphUs = 1000;
constexpr std::size_t kMostPerTiming = 1000;
/// The host runs ahead by this much; 1024 launches fill a stream's queue.
constexpr double kAheadMs = 8;
constexpr double kShortestLoadMs = 30;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

Clock::time_point after(Clock::time_point begin, double ms) {
  return begin +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(ms));
}

std::string pci_bus_id_of(int device) {
  std::array<char, 32> text{};
  cuda_check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device));
  return text.data();
}

}  // namespace

class ProductMeter::Impl {
 public:
  Impl(const MeterOptions& options, const std::vector<Shape>& shapes)
      : options_{options},
        properties_{properties_of(options.device)},
        sizes_{largest_operands(shapes, options.rotated)},
        cublas_{stream_},
        a_{checked(sizes_.a)},
        b_{checked(sizes_.b)},
        c_{checked(sizes_.c)},
        sampler_{pci_bus_id_of(options.device)},
        run_{properties_.name, static_cast<unsigned>(properties_.multiProcessorCount),
             ProductCublas::version(), options.rotated, options.rest_ms} {}

  const ProductRun& run() const { return run_; }

  std::vector<ProductMeasurement> measure(const Shape& shape,
                                          const std::vector<Contents>& contents) {
    const auto begin = Clock::now();
    a_.use(shape.a_bytes(), options_.rotated);
    b_.use(shape.b_bytes(), options_.rotated);
    c_.use(shape.c_bytes(), options_.rotated);
    fill(shape, contents.front());
    multiply(shape, 0);  // loads the kernels' code
    cuda_check(cudaStreamSynchronize(stream_));
    ProductMeasurement facts;
    facts.kernels = kernels_of(shape);
    oracle_.ask(shape, facts);
    const double product_us = estimate_us(shape);
    facts.by_graph = product_us < kLaunchBoundUs;
    facts.products_per_timing =
        products_per_timing(product_us, facts.by_graph ? kGraphUs : kTimingUs, kMostPerTiming);
    std::unique_ptr<CapturedGraph> graph;
    if (facts.by_graph) {
      graph = std::make_unique<CapturedGraph>(
          stream_, [&] { multiply_all(shape, facts.products_per_timing, 0); });
      graph->executable(stream_);
    }
    std::vector<ProductMeasurement> rows;
    for (std::size_t i = 0; i < contents.size(); ++i) {
      const auto left = static_cast<double>(contents.size() - i);
      const double spare_ms = options_.seconds_per_shape * 1e3 - ms_since(begin);
      const double load_ms = std::max(kShortestLoadMs, spare_ms / left - options_.rest_ms);
      ProductMeasurement row = facts;
      row.contents = contents[i];
      load(shape, graph.get(), product_us, load_ms, row);
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  /// `bytes`, if that much memory is free.
  static std::size_t checked(std::size_t bytes) {
    std::size_t free = 0;
    std::size_t total = 0;
    cuda_check(cudaMemGetInfo(&free, &total));
    if (bytes <= free) return bytes;
    throw CannotHereError{fmt::format("an operand needs {:.1f} GB of GPU memory, {:.1f} are free",
                                      static_cast<double>(bytes) / 1e9,
                                      static_cast<double>(free) / 1e9)};
  }

  void fill(const Shape& shape, Contents contents) {
    a_.fill(stream_, contents, shape.type, 1);
    b_.fill(stream_, contents, shape.type, 2);
    c_.fill(stream_, contents, shape.c_type, 3);
  }

  /// Empty when the driver does not tell: times are worth having without the names. Said once.
  std::vector<KernelLaunch> kernels_of(const Shape& shape) {
    try {
      const CapturedGraph one{stream_, [&] { multiply(shape, 0); }};
      if (!kernels_) kernels_ = std::make_unique<CapturedKernels>();
      return kernels_->of(one.graph());
    } catch (const ShapeError&) {
      throw;
    } catch (const std::runtime_error& error) {
      if (!std::exchange(told_, true)) {
        print_error("kernels are not known, first of {}: {}\n", key_of(shape), error.what());
      }
      return {};
    }
  }

  void multiply(const Shape& shape, std::size_t i) const {
    cublas_.multiply(shape, a_.slot(i), b_.slot(i), c_.slot(i));
  }

  void multiply_all(const Shape& shape, std::size_t count, std::size_t first) const {
    for (std::size_t i = 0; i < count; ++i) multiply(shape, first + i);
  }

  /// One product's time in a loop, in us: an upper bound where the host's calls take longer.
  double estimate_us(const Shape& shape) {
    const auto time = [&](std::size_t count) {
      cuda_check(cudaEventRecord(events_.at(0), stream_));
      multiply_all(shape, count, 0);
      cuda_check(cudaEventRecord(events_.at(1), stream_));
      cuda_check(cudaEventSynchronize(events_.at(1)));
      return events_.ms_between(0, 1) * 1e3 / static_cast<double>(count);
    };
    const double once = time(1);
    return once > 1000 ? once : time(20);
  }

  /// Idle, then products back to back for `load_ms`.
  void load(const Shape& shape, CapturedGraph* graph, double product_us, double load_ms,
            ProductMeasurement& row) {
    fill(shape, row.contents);
    cuda_check(cudaStreamSynchronize(stream_));
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options_.rest_ms));
    const std::size_t per = row.products_per_timing;
    double timing_ms = product_us * 1e-3 * static_cast<double>(per);
    const auto ahead = static_cast<std::size_t>(std::max(2.0, std::ceil(kAheadMs / timing_ms)));
    std::size_t queued = 0;
    std::size_t done = 0;
    double elapsed_ms = 0;
    sampler_.restart();
    const auto begin = Clock::now();
    cuda_check(cudaEventRecord(events_.at(0), stream_));
    while (queued == 0 || elapsed_ms + static_cast<double>(queued - done) * timing_ms < load_ms) {
      if (graph != nullptr) {
        cuda_check(cudaGraphLaunch(graph->executable(stream_), stream_));
      } else {
        multiply_all(shape, per, queued * per);
      }
      cuda_check(cudaEventRecord(events_.at(++queued), stream_));
      while (queued - done >= ahead) {
        cuda_check(cudaEventSynchronize(events_.at(++done)));
        elapsed_ms = events_.ms_between(0, done);
        timing_ms = elapsed_ms / static_cast<double>(done);
      }
    }
    cuda_check(cudaStreamSynchronize(stream_));
    std::vector<double> ends_ms;
    for (std::size_t i = 1; i <= queued; ++i) ends_ms.push_back(events_.ms_between(0, i));
    row.times = load_times(ends_ms, per);
    row.burst = sampler_.between(after(begin, kBurstFromMs), after(begin, kBurstToMs));
    row.sustained = sampler_.between(after(begin, row.times.sustained_from_ms),
                                     after(begin, row.times.load_ms));
  }

  MeterOptions options_;
  cudaDeviceProp properties_;
  OperandSizes sizes_;
  OwnStream stream_;
  ProductCublas cublas_;
  Operand a_, b_, c_;
  LtOracle oracle_;
  std::unique_ptr<CapturedKernels> kernels_;
  bool told_ = false;
  Events events_;
  GpuSampler sampler_;
  ProductRun run_;
};

ProductMeter::ProductMeter(const MeterOptions& options, const std::vector<Shape>& shapes)
    : impl_{std::make_unique<Impl>(options, shapes)} {}
ProductMeter::~ProductMeter() = default;
const ProductRun& ProductMeter::run() const { return impl_->run(); }
std::vector<ProductMeasurement> ProductMeter::measure(const Shape& shape,
                                                      const std::vector<Contents>& contents) {
  return impl_->measure(shape, contents);
}

}  // namespace foretrace::hw
