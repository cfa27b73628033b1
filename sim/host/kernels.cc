// Kernels that a host thread launches, and the memory that they go through.
#include <algorithm>

#include "models/cost/library.h"
#include "scenarios/program/product_type.h"
#include "sim/host/thread.h"

namespace foretrace::sim {

/// Of a kernel's arrays, what lies on other GPUs: reads and writes pass each other.
double HostThread::bytes_elsewhere(std::uint32_t device, std::span<const UsedMemory> memory) const {
  double read = 0, written = 0;
  for (const UsedMemory& one : memory) {
    const Buffer& buffer = program_.buffers[one.buffer];
    if (buffer.memory != MemoryKind::Device || buffer.device == device) continue;
    (one.written ? written : read) += one.bytes;
  }
  return std::max(read, written);
}

template <class PushWork>
void HostThread::launch(StreamQueue& queue, cost::Call call, const PushWork& push_work) {
  const Priced priced = price(call);
  push_work(priced.time);
  if (!launches_block_ || capture_ != nullptr) {
    take(priced);
    return;
  }
  wait_for_stream(queue);
  block(priced, cost::Wait::Device, "the kernel (CUDA_LAUNCH_BLOCKING)");
}

void HostThread::run(const Spin& op) {
  StreamQueue& queue = stream(op.stream);
  if (held_up(queue)) return;
  const Duration duration = op.duration.eval(variables_);
  launch(queue, begin_call(Param::HostLaunchKernel, queue), [&](Duration call) {
    push(queue, call, cost::Entry::Kernel,
         kernel_work([&](Reading& read) { return cost::spin_cost(read, op, duration); }));
  });
}

void HostThread::run(const Gemm& op) {
  StreamQueue& queue = stream(op.stream);
  if (held_up(queue)) return;
  const auto both = [&](Contents contents) {
    return buffer(op.a).contents == contents && buffer(op.b).contents == contents;
  };
  cost::Product product{.type = op.type,
                        .tf32 = op.tf32,
                        .scales = op.scales,
                        .result = op.result.value_or(result_of(op.type)),
                        .m = op.m.eval(variables_),
                        .n = op.n.eval(variables_),
                        .k = op.k.eval(variables_),
                        .transposes_a = op.transpose_a,
                        .transposes_b = op.transpose_b,
                        .batch = op.batch.eval(variables_),
                        .accumulates = op.adds_to_c,
                        .contents = both(Contents::Zeros)    ? products::Contents::Zeros
                                    : both(Contents::Normal) ? products::Contents::Normal
                                                             : products::Contents::Random};
  const auto matrix = [&](const BufferRef& ref, std::int64_t rows, std::int64_t columns,
                          DataType type, Scales scales) {
    return used(
        ref, {static_cast<std::uint64_t>(bytes_of(rows * columns * product.batch, type, scales))});
  };
  const UsedMemory memory[] = {
      matrix(op.a, product.m, product.k, product.type, product.scales),
      matrix(op.b, product.k, product.n, product.type, second_scales(product.scales)),
      matrix(op.c, product.m, product.n, product.result, Scales::Tensor).write()};
  product.in_graph = capture_ != nullptr;
  const auto finds = [&world = world_](cost::Product made, std::span<const cost::Pass> passes) {
    made.cached_eighths = world.costs().cached_eighths(passes.first(2));
    // What nodes of a graph take behind other kernels has it in it (kBehindOthers).
    made.fresh = !made.in_graph && cost::any_fresh(passes.first(2));
    return made;
  };
  const std::uint32_t device = queue.declared().device;
  const Passes passes = go_through(device, memory);
  const cost::Product found = finds(product, {passes.data(), passes.size()});
  cost::Call call = begin_call(Param::HostLaunchGemm, queue);
  const cost::KernelCost& costs = world_.costs().of(found);
  call.kernels = costs.kernels;
  call.share = costs.call_share;
  const double elsewhere = bytes_elsewhere(device, memory);
  launch(queue, call, [&](Duration time) {
    KernelWork work = kernel_work_of(found, cost::gemm_cost);
    Reading read{machine_};
    work.cost = cost::over_nvlink(read, work.cost, elsewhere);
    push(queue, time, cost::Entry::Kernel, std::move(work));
    goes_through_again(device, memory,
                       [product, finds, elsewhere, &world = world_](
                           Reading& reading, std::span<const cost::Pass> again) {
                         const cost::Product by = finds(product, again);
                         return cost::over_nvlink(reading, world.costs().of(by), elsewhere);
                       });
  });
}

void HostThread::run(const Elementwise& op) {
  StreamQueue& queue = stream(op.stream);
  if (held_up(queue)) return;
  const Bytes size = op.size.eval(variables_);
  std::vector<UsedMemory> memory;
  for (const BufferRef& source : op.sources) memory.push_back(used(source, size));
  memory.push_back(used(op.dst, size).write());
  const std::uint32_t device = queue.declared().device;
  const double elsewhere = bytes_elsewhere(device, memory);
  launch(queue, begin_call(Param::HostLaunchKernel, queue), [&](Duration call) {
    push_kernel(queue, call, device, memory,
                [elsewhere](Reading& read, std::span<const cost::Pass> passes) {
                  return cost::over_nvlink(read, cost::elementwise_cost(read, passes), elsewhere);
                });
  });
}

void HostThread::run(const Reduction& op) {
  StreamQueue& queue = stream(op.stream);
  if (held_up(queue)) return;
  const UsedMemory memory = used(op.src, op.size.eval(variables_)).sum();
  const std::uint32_t device = queue.declared().device;
  const double elsewhere = bytes_elsewhere(device, {&memory, 1});
  launch(queue, begin_call(Param::HostLaunchKernel, queue), [&](Duration call) {
    push_kernel(queue, call, device, {&memory, 1},
                [elsewhere](Reading& read, std::span<const cost::Pass> passes) {
                  const cost::Pass& pass = passes.front();
                  return cost::over_nvlink(read, cost::reduction_cost(read, pass), elsewhere);
                });
  });
}

void HostThread::run(const LibraryKernel& op) {
  StreamQueue& queue = stream(op.stream);
  if (held_up(queue)) return;
  const cost::LibraryWork work{.kernel = op.kernel,
                               .flops = static_cast<double>(op.flops.eval(variables_)),
                               .bytes = static_cast<double>(op.bytes.eval(variables_).count),
                               .width = static_cast<double>(op.width.eval(variables_)),
                               .captured = op.captured};
  const bool in_a_framework = op.kernel == KernelKind::Captured && machine_.has(Param::EagerLaunch);
  const Param call_of = in_a_framework ? Param::EagerLaunch : Param::HostLaunchKernel;
  launch(queue, begin_call(call_of, queue), [&](Duration call) {
    push(queue, call, cost::Entry::Kernel, kernel_work_of(work, cost::library_cost));
  });
}

}  // namespace foretrace::sim
