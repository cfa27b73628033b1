#include "sim/applications/serving/predict.h"

#include <fmt/format.h>

#include "models/nccl/topology/machine.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/serving/traffic.h"

namespace foretrace::serving {
namespace {

std::vector<Served> all_engines(const Serving& serving, const std::vector<Arrival>& arrivals,
                                std::int64_t blocks,
                                const std::function<double(const Batch&)>& seconds_of) {
  std::vector<Served> engines;
  for (std::int64_t i = 0; i < serving.replicas; ++i) {
    const std::vector<Arrival> own = of_replica(serving, arrivals, i);
    if (own.empty()) continue;
    engines.push_back(serve(serving, own, blocks, seconds_of));
    std::int64_t id = i;
    for (Request& one : engines.back().requests) {
      one.id = id;
      id += serving.replicas;
    }
  }
  return engines;
}

}  // namespace

Serving on_machine(Serving serving, const Machine& machine) {
  const auto gpus = static_cast<std::uint32_t>(serving.tensor);
  serving.has_nvlink = nccl::topology_of(machine, gpus, 1).has_nvlink();
  return serving;
}

Predicted predict(const Serving& serving, const Machine& machine, const Timeline& timeline) {
  Predicted predicted;
  const auto memory = static_cast<std::int64_t>(machine.get(Param::GpuMemory).value);
  predicted.cache_tokens = cache_tokens(serving, memory);
  predicted.is_limited = serving.engine.cache_tokens == predicted.cache_tokens;
  if (predicted.cache_tokens < serving.engine.block) {
    constexpr double kGb = 1e9;
    throw UsageError{fmt::format(
        "{}: weights of {:.1f} GB leave no memory of a GPU's {:.1f} GB to the cache: 'parallel: "
        "{{tensor: {}}}' halves them",
        serving.file, static_cast<double>(weight_bytes(serving)) / kGb,
        static_cast<double>(memory) / kGb, 2 * serving.tensor)};
  }
  const std::int64_t blocks = predicted.cache_tokens / serving.engine.block;
  const std::vector<Arrival> arrivals = arrivals_of(serving.traffic);
  const IterationTimes times{serving, machine, timeline};
  predicted.engines = all_engines(serving, arrivals, blocks,
                                  [&](const Batch& batch) { return times.of(batch).seconds; });
  predicted.middle = summary_of(serving, predicted.engines);
  predicted.fast =
      summary_of(serving, all_engines(serving, arrivals, blocks,
                                      [&](const Batch& batch) { return times.of(batch).low; }));
  predicted.slow =
      summary_of(serving, all_engines(serving, arrivals, blocks,
                                      [&](const Batch& batch) { return times.of(batch).high; }));
  return predicted;
}

}  // namespace foretrace::serving
