#include "sim/applications/training/captured_usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "scenarios/base/values/time_text.h"

namespace foretrace::sim {
namespace {

/// From the end of the first process's last turn but one to the end of its last, and its steps.
struct Window {
  std::int64_t begin = 0, end = 0;
  std::uint64_t steps = 1;
};

/// Each turn ends with the device_synchronize that stands last in the program.
Window last_window(const Timeline& timeline) {
  Window window;
  for (const RegionSamples& region : timeline.regions) {
    if (region.process == 0) window.steps = region.per;
  }
  std::uint32_t last = 0;
  const auto ends_a_turn = [&](const Span& span) {
    return span.part == 0 && timeline.lanes[span.lane].process == 0 &&
           timeline.ops[span.op].kind == "device_synchronize";
  };
  for (const Span& span : timeline.spans) {
    if (ends_a_turn(span)) last = std::max(last, span.op);
  }
  for (const Span& span : timeline.spans) {
    if (!ends_a_turn(span) || span.op != last || span.end_ns <= window.end) continue;
    window.begin = window.end;
    window.end = span.end_ns;
  }
  return window;
}

double busy(std::vector<std::pair<std::int64_t, std::int64_t>>& spans) {
  std::ranges::sort(spans);
  std::int64_t all = 0, last = 0;
  for (const auto& [begin, end] : spans) {
    all += std::max<std::int64_t>(0, end - std::max(begin, last));
    last = std::max(last, end);
  }
  return static_cast<double>(all);
}

std::string gb_text(std::int64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) * 1e-9);
}

/// Bytes for the program: without the CUDA context. 0: the machine does not say.
std::int64_t gpu_memory(const Machine& machine) {
  if (!machine.has(Param::GpuMemory)) return 0;
  const double context =
      machine.has(Param::GpuMemoryContext) ? machine.get(Param::GpuMemoryContext).value : 0;
  return static_cast<std::int64_t>(machine.get(Param::GpuMemory).value - context);
}

}  // namespace

std::string why_it_does_not_fit(const captured::Expansion& expansion, const Machine& machine) {
  const std::int64_t capacity = gpu_memory(machine);
  const std::int64_t peak = std::max(expansion.memory.allocated_peak, expansion.memory.first_peak);
  if (capacity == 0 || peak <= capacity) return {};
  return fmt::format(
      "does not fit: {} of memory are allocated at the peak, a GPU of {} has {} for a program",
      gb_text(peak), machine.name, gb_text(capacity));
}

std::vector<MemoryPeak> memory_peaks(const captured::Expansion& expansion, const Program& program) {
  std::vector<MemoryPeak> peaks;
  if (expansion.memory.allocated_peak == 0) return peaks;
  for (std::uint32_t process = 0; process < program.processes; ++process) {
    peaks.push_back({process, 0, expansion.memory.allocated_peak,
                     std::max(expansion.memory.allocated_peak, expansion.memory.reserved_peak)});
  }
  return peaks;
}

CapturedUsage captured_usage(const Program& program, const Timeline& timeline) {
  const std::vector<OpInfo> ops = index_ops(program);
  const Window window = last_window(timeline);
  CapturedUsage usage;
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  std::map<std::uint32_t, kernels::Basis> bases;  // by operation
  for (const Span& span : timeline.spans) {
    const bool is_ours = span.part > 0 && span.begin_ns >= window.begin &&
                         span.end_ns <= window.end && timeline.lanes[span.lane].process == 0;
    if (!is_ours) continue;
    spans.emplace_back(span.begin_ns, span.end_ns);
    const auto ns = static_cast<double>(span.end_ns - span.begin_ns);
    const OpKind* kind = span.op < ops.size() ? &ops[span.op].op->kind : nullptr;
    const auto* kernel = kind != nullptr ? std::get_if<LibraryKernel>(kind) : nullptr;
    if (kernel != nullptr && kernel->kernel == KernelKind::Captured) {
      auto known = bases.find(span.op);
      if (known == bases.end()) {
        const kernels::Asked asked{kernel->captured,
                                   static_cast<double>(kernel->bytes.eval({}).count),
                                   static_cast<double>(kernel->flops.eval({}))};
        known = bases.emplace(span.op, kernels::shipped_kernels().estimate(asked).basis).first;
      }
      usage.captured_ns[static_cast<std::size_t>(known->second)] += ns;
    } else if (timeline.ops[span.op].kind.starts_with("nccl_")) {
      usage.communication_ns += ns;
    } else if (kind != nullptr && std::holds_alternative<Gemm>(*kind)) {
      usage.products_ns += ns;
    } else {
      usage.other_ns += ns;
    }
  }
  const auto steps = static_cast<double>(std::max<std::uint64_t>(1, window.steps));
  usage.step_ns = static_cast<double>(window.end - window.begin) / steps;
  usage.busy_ns = busy(spans) / steps;
  for (double* sum : {&usage.communication_ns, &usage.products_ns, &usage.other_ns}) *sum /= steps;
  for (double& sum : usage.captured_ns) sum /= steps;
  return usage;
}

void widen_bands(Timeline& timeline, const Machine& machine, const CapturedUsage& usage,
                 const Program& program) {
  const auto spread = [&](Param param) {
    return machine.has(param) ? machine.get(param).value : 0.0;
  };
  const auto of = [&](kernels::Basis basis) {
    return usage.captured_ns[static_cast<std::size_t>(basis)];
  };
  const double unknown = of(kernels::Basis::Family) + of(kernels::Basis::Plain);
  const double kernels =
      spread(Param::BlindCapturedUnknown) * unknown / std::max(1.0, usage.step_ns);
  const double ranks = program.processes > 1 ? spread(Param::BlindCapturedRanks) : 0;
  for (RegionSamples& region : timeline.regions) {
    region.high_factor = 1 + std::hypot(region.high_factor - 1, kernels, ranks);
    region.low_factor = 1 / region.high_factor;
  }
}

std::string describe(const CapturedUsage& usage, const captured::Expansion& expansion,
                     const Machine& machine) {
  const double captured = std::accumulate(usage.captured_ns.begin(), usage.captured_ns.end(), 0.0);
  const double all =
      std::max(1.0, captured + usage.products_ns + usage.communication_ns + usage.other_ns);
  const auto share = [all](double ns) { return fmt::format("{:.0f} %", 100 * ns / all); };
  std::string text =
      fmt::format("the GPU is busy {} of {} a step ({:.0f} %)", format_time(usage.busy_ns),
                  format_time(usage.step_ns), 100 * usage.busy_ns / std::max(1.0, usage.step_ns));
  text += usage.busy_ns < 0.9 * usage.step_ns ? ", else it waits for the host or for other ranks\n"
                                              : "\n";
  text += fmt::format(
      "of its time: products {}, communication {}, copies and fills {}, other kernels {}:\n",
      share(usage.products_ns), share(usage.communication_ns), share(usage.other_ns),
      share(captured));
  text += fmt::format(
      "  {} measured at this size, {} the same kernel at other sizes, {} kernels of its family, {} "
      "by bytes and flops alone\n",
      share(usage.captured_ns[0]), share(usage.captured_ns[1]), share(usage.captured_ns[2]),
      share(usage.captured_ns[3]));
  if (expansion.memory.allocated_peak > 0) {
    const std::int64_t capacity = gpu_memory(machine);
    const std::int64_t kept = expansion.memory.reserved_peak;
    text += fmt::format("memory of a GPU at the peak: {} allocated, {}{}\n",
                        gb_text(expansion.memory.allocated_peak),
                        kept > 0 ? gb_text(kept) + " reserved, as PyTorch's allocator does"
                                 : "what PyTorch's allocator keeps beyond is not known",
                        capacity > 0 ? ", of " + gb_text(capacity) : "");
    if (expansion.memory.first_peak > expansion.memory.allocated_peak) {
      text += fmt::format("  the first steps, and what makes the model, allocate up to {}\n",
                          gb_text(expansion.memory.first_peak));
    }
    if (capacity > 0 && expansion.memory.reserved_peak > capacity) {
      text +=
          "on the boundary: the allocator has to give blocks back and ask again, which costs much "
          "time and mostly does not "
          "do; foretrace capture --memory with this GPU's bytes says whether the program fits\n";
    }
  }
  return text;
}

}  // namespace foretrace::sim
