#include "sim/applications/training/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "scenarios/architecture/counts.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/values/time_text.h"
#include "scenarios/styles/style.h"

namespace foretrace::sim {

Peak mfu_peak(const Machine& machine) {
  for (const Param param : {Param::GpuHalfFlops, Param::ProductsHalfPeak}) {
    if (!machine.has(param)) continue;
    return {machine.get(param).value, std::string{info(param).key}};
  }
  throw UsageError{
      fmt::format("machine {} says no peak in half precision, over which MFU is counted\n"
                  "  hint: gpu.half_flops: {{value: 989.4 TFLOP/s, source: datasheet}}",
                  machine.name)};
}

std::string gigabytes(double bytes) { return fmt::format("{:.1f} GB", bytes * 1e-9); }

const RegionSamples* last_step(const Timeline& timeline, std::optional<std::uint32_t> process) {
  const RegionSamples* slowest = nullptr;
  for (const RegionSamples& region : timeline.regions) {
    if (region.name != "step" || region.process != process.value_or(region.process)) continue;
    const bool later = slowest == nullptr || region.instance > slowest->instance;
    const bool slower = slowest != nullptr && region.instance == slowest->instance &&
                        region.samples_ns.front() > slowest->samples_ns.front();
    if (later || slower) slowest = &region;
  }
  return slowest;
}

namespace {

StepUsage usage_in(const Timeline& timeline, const std::map<std::uint32_t, TimeWindow>& windows,
                   std::uint32_t process) {
  const TimeWindow& own = windows.at(process);
  return {static_cast<double>(std::max<std::int64_t>(1, own.to_ns - own.from_ns)) * 1e-9, process,
          own.from_ns, shares_in(timeline, windows)};
}

}  // namespace

std::optional<StepUsage> usage_of(const Timeline& timeline, std::optional<std::uint32_t> process) {
  const RegionSamples* const step = last_step(timeline, process);
  if (step == nullptr) return std::nullopt;
  std::map<std::uint32_t, std::int64_t> ends;  // where the last span of each process ends
  for (const Span& span : timeline.spans) {
    std::int64_t& end = ends[timeline.lanes[span.lane].process];
    end = std::max(end, span.end_ns);
  }
  std::map<std::uint32_t, TimeWindow> windows;
  for (const RegionSamples& region : timeline.regions) {
    if (region.name != step->name || region.instance != step->instance) continue;
    const std::int64_t end = ends[region.process];
    windows[region.process] = {end - region.samples_ns.front(), end};
  }
  return usage_in(timeline, windows, step->process);
}

StepUsage usage_between(const Timeline& timeline, std::uint32_t process, std::int64_t from,
                        std::int64_t to) {
  std::map<std::uint32_t, TimeWindow> windows{{process, {from, to}}};
  for (const RegionSamples& region : timeline.regions) {
    if (region.name == "step") windows[region.process] = {from, to};
  }
  return usage_in(timeline, windows, process);
}

std::string limit_of(const StepShares& shares) {
  if (shares.idle > shares.exposed() && shares.idle > 0.25) return "the host thread";
  if (shares.exposed() <= shares.computing / 2) return "computing";
  return shares.communication > shares.waiting ? "communication" : "waiting for other ranks";
}

MemoryVerdict memory_verdict(const training::PartBytes& memory, const Machine& machine) {
  // CUDA's context and NCCL's buffers; and what the caching allocator loses to fragments: it held
  // 4.3 % of an H200 that nobody used when a step ran out of memory (memory_70b_10_layers).
  constexpr double kContext = 1.2e9;
  constexpr double kFragments = 0.05;
  constexpr double kTight = 0.95;
  MemoryVerdict verdict;
  verdict.bytes = static_cast<double>(training::sum(memory));
  if (!machine.has(Param::GpuMemory)) return verdict;
  verdict.capacity = machine.get(Param::GpuMemory).value;
  const double room = (1 - kFragments) * verdict.capacity - kContext;
  verdict.fits = verdict.bytes <= room;
  verdict.is_tight = verdict.fits && verdict.bytes > kTight * room;
  return verdict;
}

namespace {

/// The first three things to change, those that cost least first.
std::vector<std::string> remedies(const training::TrainingStep& step,
                                  const training::Expansion& expansion) {
  using enum training::Part;
  const auto of = [&](training::Part part) {
    return static_cast<double>(expansion.memory[static_cast<std::size_t>(part)]);
  };
  std::vector<std::string> all;
  const bool by_activations = of(Activations) + of(Temporary) > of(Parameters) + of(Optimizer);
  const auto for_activations = [&] {
    if (step.micro_batch > 1) {
      all.push_back(fmt::format("a smaller micro-batch: {} instead of {}, with more passes",
                                step.micro_batch / 2, step.micro_batch));
    }
    if (step.recompute == training::Recompute::None) {
      all.emplace_back("recompute: selective, or full: activations are computed again");
    } else if (step.recompute == training::Recompute::Selective) {
      all.emplace_back("recompute: full: only the inputs of layers are kept");
    }
    if (step.tensor > 1 && !step.sequence_parallel && !step.is_deepspeed()) {
      all.emplace_back("parallel: {sequence: true}: norms and residuals are split too");
    }
  };
  if (step.hands_out_outputs()) {
    const double kept = 2.0 * static_cast<double>(step.tokens() * step.model.vocab) *
                        static_cast<double>(step.passes);
    all.push_back(fmt::format(
        "return_outputs: false: the last stage keeps no logits, {} over all micro-batches",
        gigabytes(step.loss_parallel ? kept / static_cast<double>(step.tensor) : kept)));
  }
  if (by_activations) for_activations();
  const std::int64_t twice = 2 * step.expert;
  if (step.model.experts > 0 && step.model.experts % twice == 0 && step.data % twice == 0) {
    all.push_back(fmt::format(
        "parallel: {{expert: {}}}: each GPU holds half as many experts of a layer", twice));
  }
  const bool whole = step.is_megatron();  // which is expanded for whole parameters only
  if (!whole && step.sharding != training::Sharding::Fsdp && step.data > 1) {
    all.emplace_back("sharding: fsdp: parameters, gradients and moments are split over the ranks");
  }
  if (whole && step.sharding == training::Sharding::Ddp && step.data > 1) {
    all.emplace_back("sharding: zero1: moments are split over the ranks");
  }
  if (step.float32_parameters && step.sharding != training::Sharding::Fsdp) {
    all.emplace_back("precision: {parameters: bfloat16}: half the bytes for each parameter");
  }
  if (!by_activations) for_activations();
  all.push_back(fmt::format("more GPUs: parallel: {{tensor: {}}}{}", step.tensor * 2,
                            whole ? "" : ", or twice the processes with fsdp"));
  all.emplace_back("a GPU with more memory: foretrace list machines");
  all.resize(std::min<std::size_t>(3, all.size()));
  return all;
}

/// ", MFU 41.9 % of 989.4"; empty where a machine says no peak.
std::string mfu_of(double flops, const Machine& machine) {
  if (!machine.has(Param::GpuHalfFlops)) return {};
  const double peak = machine.get(Param::GpuHalfFlops).value;
  return fmt::format(", MFU {:.1f} % of {:.1f}", 100 * flops / peak, peak * 1e-12);
}

}  // namespace

std::string rate_words(const training::TrainingStep& step, const training::Expansion& expansion,
                       const Machine& machine, double seconds) {
  const double each = expansion.flops / static_cast<double>(step.processes()) / seconds;
  return fmt::format("{:.0f} tokens/s, {:.0f} TFLOP/s of the model on each GPU{}",
                     static_cast<double>(expansion.tokens) / seconds, each * 1e-12,
                     mfu_of(each, machine));
}

std::string share_words(const StepUsage& usage) {
  const StepShares mean = mean_of(usage.of_process);
  return fmt::format(
      "{:.0f} % computing, {:.0f} % communication, {:.0f} % waiting for another rank, {:.0f} % "
      "idle: limited by {}",
      100 * mean.computing, 100 * mean.communication, 100 * mean.waiting, 100 * mean.idle,
      limit_of(mean));
}

std::string memory_words(const training::Expansion& expansion, const Machine& machine) {
  const MemoryVerdict verdict = memory_verdict(expansion.memory, machine);
  std::string text =
      fmt::format("{} of {}:", gigabytes(verdict.bytes), gigabytes(verdict.capacity));
  for (std::size_t i = 0; i < training::kParts; ++i) {
    text += fmt::format("{} {} {}", i == 0 ? "" : ",",
                        training::part_name(static_cast<training::Part>(i)),
                        gigabytes(static_cast<double>(expansion.memory[i])));
  }
  return text;
}

std::string describe(const training::TrainingStep& step, const training::Expansion& expansion,
                     const Machine& machine, const std::optional<StepUsage>& usage) {
  std::string text =
      fmt::format("model {}: {}\n", step.model.name, training::understood(step.model));
  if (step.is_eager()) text += styles::own_code_note();
  if (usage) {
    text += fmt::format("step: {}, {}\nof it {}\n", format_time(usage->seconds * 1e9),
                        rate_words(step, expansion, machine, usage->seconds), share_words(*usage));
  }
  const MemoryVerdict verdict = memory_verdict(expansion.memory, machine);
  text += fmt::format("memory of a GPU: {}\n", memory_words(expansion, machine));
  if (verdict.is_tight) {
    text +=
        "this is so near the GPU's memory that the allocator may give blocks back and ask again, "
        "which costs much time\n";
  }
  if (verdict.fits) return text;
  text += "this does not fit; change first:\n";
  for (const std::string& remedy : remedies(step, expansion)) text += "  - " + remedy + "\n";
  return text;
}

}  // namespace foretrace::sim
