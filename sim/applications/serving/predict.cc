#include "sim/applications/serving/predict.h"

#include <fmt/format.h>

#include <numeric>

#include "models/constants/constants.h"
#include "models/nccl/topology/machine.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/serving/traffic.h"

namespace foretrace::serving {
namespace {

/// Whether `gpus` in one node are joined by NVLink; of one GPU it does not matter.
bool has_nvlink(const Machine& machine, std::int64_t gpus) {
  if (gpus > machine.gpus_per_node) return false;
  return nccl::topology_of(machine, static_cast<std::uint32_t>(gpus), 1).has_nvlink();
}

Serving on_machine(Serving serving, const Machine& machine) {
  const Layout& layout = serving.layout;
  serving.has_nvlink = has_nvlink(machine, layout.tensor);
  serving.groups_have_nvlink = has_nvlink(machine, layout.stage_gpus());
  serving.stages_have_nvlink = has_nvlink(machine, layout.gpus());
  if (layout.tensor > 1 && layout.data > 1 && !exchanges_itself(serving)) {
    throw UsageError{
        fmt::format("{}: {} groups of {} GPUs that NVLink does not join, or of our own engine, are "
                    "not simulated: 'tensor: 1' is, and 'data: 1'",
                    serving.file, layout.data, layout.tensor)};
  }
  return serving;
}

std::int64_t room_for_cache(const Serving& serving, const Machine& machine) {
  const auto memory = static_cast<std::int64_t>(machine.get(Param::GpuMemory).value);
  const bool is_vllm = serving.engine.kind == EngineKind::Vllm;
  const auto workspace = static_cast<std::int64_t>(
      constant_size(is_vllm ? "serving.vllm.workspace" : "serving.workspace").count);
  const std::int64_t tokens = cache_tokens(serving, memory, workspace);
  if (tokens >= serving.engine.block) return tokens;
  if (serving.engine.cache_tokens && *serving.engine.cache_tokens < serving.engine.block) {
    throw UsageError{fmt::format(
        "{}: 'cache_tokens: {}' of the engine are no block of its cache\n  hint: at least {}",
        serving.file, *serving.engine.cache_tokens, serving.engine.block)};
  }
  constexpr double kGb = 1e9;
  throw UsageError{fmt::format(
      "{}: weights of {:.1f} GB leave no memory of a GPU's {:.1f} GB to the cache: 'parallel: "
      "{{tensor: {}}}' halves them",
      serving.file, static_cast<double>(weight_bytes(serving)) / kGb,
      static_cast<double>(memory) / kGb, 2 * serving.layout.tensor)};
}

/// Keys and values of `tokens` from GPU to GPU, each a share of them: over NVLink where both kinds
/// of engines are in one node, else each over a network card of its own.
double transfer_seconds(const Serving& prompts, const Serving& engines, const Machine& machine,
                        std::int64_t tokens) {
  const std::int64_t all =
      prompts.layout.gpus() * prompts.replicas + engines.layout.gpus() * engines.replicas;
  const bool in_node = has_nvlink(machine, all);
  const double link =
      in_node ? machine.get(Param::NvlinkBandwidth).value : nccl::nic_bytes_per_second(machine);
  Serving whole = prompts;
  whole.layout = {};
  const std::int64_t senders =
      std::min(prompts.layout.tensor * prompts.layout.pipeline, engines.layout.gpus());
  const std::int64_t bytes = cache_bytes(whole) * tokens + state_bytes(whole);
  return static_cast<double>(bytes) / static_cast<double>(senders) / link;
}

/// Of a server around the engine, until a client has a token.
Time front_time(EngineKind kind) {
  const double seconds = own_work(kind).front;
  return {seconds, constant("serving.front.quickest") * seconds,
          constant("serving.front.slowest") * seconds};
}

/// Every token later by so much.
std::vector<Served> as_clients_see(std::vector<Served> engines, double seconds) {
  const std::int64_t later_ns = round_to_ns(seconds_to_duration(seconds));
  for (Served& engine : engines) {
    for (Request& request : engine.requests) {
      for (std::int64_t& token_ns : request.token_ns) token_ns += later_ns;
    }
  }
  return engines;
}

}  // namespace

std::vector<Serving> kinds_of(const Serving& serving, const Machine& machine) {
  std::vector<Serving> kinds;
  if (serving.apart) kinds.push_back(on_machine(prompts_of(serving), machine));
  kinds.push_back(on_machine(serving, machine));
  return kinds;
}

Predicted predict(const std::vector<Serving>& kinds, const Machine& machine,
                  const std::vector<std::vector<RegionTime>>& simulated) {
  return predict(kinds, machine, simulated, arrivals_of(kinds.back().traffic));
}

Predicted predict(const std::vector<Serving>& kinds, const Machine& machine,
                  const std::vector<std::vector<RegionTime>>& simulated,
                  const std::vector<Arrival>& arrivals) {
  const Serving& serving = kinds.back();
  Predicted predicted;
  std::vector<IterationTimes> times;
  std::vector<std::int64_t> blocks;
  times.reserve(kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::int64_t tokens = room_for_cache(kinds[i], machine);
    blocks.push_back(tokens / kinds[i].engine.block);
    times.emplace_back(kinds[i], machine, simulated[i]);
    predicted.cache_tokens = tokens;
    predicted.is_limited = serving.engine.cache_tokens == tokens;
  }
  const std::int64_t client_ns =
      round_to_ns(seconds_to_duration(own_work(serving.engine.kind).front));
  const auto served = [&](double Time::*end) {
    const auto engines = [&](std::size_t i) {
      return Engines{
          kinds[i], blocks[i],
          [&times, i, end](const Batch& batch) { return times[i].of(batch).*end; },
          [&times, i, end](const Batch& batch) { return times[i].of_stage(batch).*end; }};
    };
    Fleet fleet{engines(kinds.size() - 1)};
    fleet.client_ns = client_ns;
    if (kinds.size() > 1) {
      fleet.prompts = engines(0);
      fleet.transfer_seconds = [&](std::int64_t tokens) {
        return transfer_seconds(kinds[0], serving, machine, tokens);
      };
    }
    return as_clients_see(serve(fleet, arrivals), front_time(serving.engine.kind).*end);
  };
  predicted.engines = served(&Time::seconds);
  predicted.middle = summary_of(serving, predicted.engines);
  predicted.fast = summary_of(serving, served(&Time::low));
  predicted.slow = summary_of(serving, served(&Time::high));
  return predicted;
}

}  // namespace foretrace::serving
