#include "sim/applications/serving/iteration_times.h"

#include <algorithm>
#include <cmath>

#include "models/constants/constants.h"
#include "models/cost/kernel.h"
#include "models/cost/library.h"
#include "models/nccl/topology/machine.h"
#include "scenarios/base/text/errors.h"
#include "sim/engine/children.h"

namespace foretrace::serving {
namespace {

Time mixed(const Time& a, const Time& b, double share) {
  const auto one = [share](double x, double y) { return x + (y - x) * share; };
  return {one(a.seconds, b.seconds), one(a.low, b.low), one(a.high, b.high)};
}

double kernel_seconds(const Machine& machine, const AttentionWork& work) {
  if (work.flops <= 0) return 0;
  Reading read{machine};
  const cost::LibraryWork asked{.kernel = KernelKind::AttentionForward,
                                .flops = static_cast<double>(work.flops),
                                .bytes = static_cast<double>(work.bytes),
                                .width = static_cast<double>(work.width)};
  return to_seconds(cost::library_cost(read, asked).alone);
}

/// Of each region: how long kernels and copies ran in it, in seconds. Regions follow each other,
/// and all that one issues has its operations.
std::vector<double> busy_seconds(const Timeline& timeline) {
  std::vector<double> busy(timeline.regions.size());
  for (const Span& span : timeline.spans) {
    if (timeline.lanes[span.lane].kind != LaneKind::Stream) continue;
    const auto after = std::ranges::upper_bound(timeline.regions, span.op, {}, &RegionSamples::op);
    if (after == timeline.regions.begin()) continue;  // captured before
    const auto region = static_cast<std::size_t>(after - timeline.regions.begin()) - 1;
    busy[region] += static_cast<double>(span.end_ns - span.begin_ns) * 1e-9;
  }
  return busy;
}

Time later(const Time& a, double seconds) {
  return {a.seconds + seconds, a.low + seconds, a.high + seconds};
}

Time at_least(const Time& a, const Time& b) {
  return {std::max(a.seconds, b.seconds), std::max(a.low, b.low), std::max(a.high, b.high)};
}

/// Calls of an iteration whose sizes never came before: cuBLAS chooses kernels anew, and the
/// allocator finds no block.
Time with_new_sizes(const Time& calls) {
  static const double kLonger = constant("serving.foretrace.new_sizes");
  return {kLonger * calls.seconds, calls.low, kLonger * calls.high};
}

/// Hosts differ: what waits for one may be so much quicker or slower, but not quicker than the
/// device.
Time with_host_band(Time time, double busy, const std::optional<Serving::Host>& host) {
  static const double kQuick = constant("serving.host.quickest");
  static const double kSlow = constant("serving.host.slowest");
  const double waits = std::max(0.0, time.seconds - busy) / time.seconds;
  if (waits < constant("serving.host.waits")) return time;
  const double width = host ? host->band : 1;
  const double quick = std::pow(kQuick, width), slow = std::pow(kSlow, width);
  return {time.seconds, std::min(time.low, std::max(busy, quick * time.seconds)),
          std::max(time.high, slow * time.seconds)};
}

/// All-reduces by a kernel of the engine's own: every GPU reads what all others have.
double own_sums_seconds(const Serving& serving, const Machine& machine, const Batch& batch,
                        double expert_layers) {
  static const double kBase = constant("serving.one_step_sum");
  const Layout& layout = serving.layout;
  const auto rows = static_cast<double>(summed_bytes(serving, batch.tokens()));
  const double link = machine.get(Param::NvlinkBandwidth).value;
  const std::int64_t layers = serving.model.layers - serving.first_layer() +
                              (guesses_by_layer(serving) ? serving.engine.guesses() : 0);
  double seconds = 0;
  if (adds_itself(serving, batch.tokens())) {
    const double read = static_cast<double>(layout.tensor - 1) * rows / link;
    seconds += 2 * static_cast<double>(layers) * (kBase + read);
  }
  if (layout.data > 1 && exchanges_itself(serving)) {
    // All groups' rows come here, or those for experts of this GPU, whatever is less; and back.
    const auto times = static_cast<double>(std::min(layout.data - 1, serving.model.top_k));
    seconds += 2 * expert_layers * (kBase + times * rows / link);
  }
  return seconds;
}

/// Of y = x W^T, whose weights are not in the level-2 cache.
struct Linear {
  Precision precision = Precision::BFloat16;
  std::int64_t outputs = 1, inputs = 1, rows = 1, batch = 1;
};
double linear_seconds(const Machine& machine, const Linear& of) {
  Reading read{machine};
  cost::Product asked{.type = product_type(of.precision),
                      .scales = product_scales(of.precision),
                      .result = DataType::BFloat16,
                      .m = of.outputs,
                      .n = of.rows,
                      .k = of.inputs,
                      .transposes_a = true,
                      .batch = of.batch};
  asked.cached_eighths = 0;
  return to_seconds(cost::gemm_cost(read, asked).alone);
}

/// What a layer's experts take longer than two products of cuBLAS, an activation, a softmax and a
/// sum: sorting, copies, and grouped products that are slower. Blackwell's libraries have kernels
/// that do it all.
double around_experts_seconds(const Serving& serving, const Machine& machine, const Batch& batch) {
  static const double kAround = constant("serving.experts.around");
  static const double kTriton = constant("serving.experts.triton");
  static const double kOwnAround = constant("serving.foretrace.experts.around");
  static const double kOwnToken = constant("serving.foretrace.experts.token");
  static const double kOwnProduct = constant("serving.foretrace.experts.product");
  static const double kSmBytes = constant("serving.foretrace.sm_bytes");
  constexpr std::uint32_t kBlackwell = 100;
  const EngineKind kind = serving.engine.kind;
  const bool is_ours = kind == EngineKind::Foretrace;
  if (!is_ours && nccl::gpu_capability(machine.gpu_name).value_or(kBlackwell) >= kBlackwell) {
    return 0;
  }
  const ExpertWork work = expert_work(serving, batch.tokens());
  const auto product = [&](std::int64_t outputs, std::int64_t inputs) {
    return linear_seconds(machine, {serving.precision, outputs, inputs, work.rows, work.experts});
  };
  const std::int64_t hidden = serving.model.hidden;
  const double products = product(2 * work.width, hidden) + product(hidden, work.width);
  if (is_ours) {
    constexpr std::int64_t kMatrices = 3, kElement = 2;  // bytes
    const auto bytes =
        static_cast<double>(kMatrices * work.experts * work.width * hidden * kElement);
    const double at_rate = bytes / (machine.get(Param::SmCount).value * kSmBytes) + 2 * kOwnProduct;
    return kOwnAround + kOwnToken * static_cast<double>(batch.tokens()) +
           std::max(0.0, at_rate - products);
  }
  return kAround + (kind == EngineKind::TensorRtLlm ? 0 : (kTriton - 1) * products);
}

/// Networks of experts were wrong by more than their kernels' bands say with others' engines, by
/// less with ours.
Time with_experts_band(const Serving& serving, const Batch& batch, Time time) {
  static const double kWider = constant("serving.experts.band");
  static const double kOwnDecodes = constant("serving.foretrace.experts.decodes_band");
  static const double kOwnPrompts = constant("serving.foretrace.experts.prompts_band");
  if (serving.model.experts == 0) return time;
  if (serving.engine.kind != EngineKind::Foretrace) {
    return {time.seconds, time.low / kWider, time.high * kWider};
  }
  const double share = batch.chunk_tokens > 0 ? kOwnPrompts : kOwnDecodes;
  const auto nearer = [&](double end) {
    return time.seconds * std::pow(end / time.seconds, share);
  };
  return {time.seconds, nearer(time.low), nearer(time.high)};
}

}  // namespace

OwnWork own_work(EngineKind kind) {
  switch (kind) {
    case EngineKind::Foretrace:
      return {constant("serving.foretrace.iteration"), constant("serving.foretrace.request"),
              constant("serving.foretrace.token"), 0};
    case EngineKind::Vllm:
      return {constant("serving.vllm.iteration"), constant("serving.vllm.request"), 0,
              constant("serving.vllm.front")};
    case EngineKind::Sglang:
      return {constant("serving.sglang.iteration"), constant("serving.sglang.request"), 0,
              constant("serving.sglang.front")};
    case EngineKind::TensorRtLlm:
      return {constant("serving.tensorrt.iteration"), constant("serving.tensorrt.request"), 0,
              constant("serving.tensorrt.front")};
  }
  return {};
}

std::vector<RegionTime> region_times(const Timeline& timeline) {
  const std::vector<double> busy = busy_seconds(timeline);
  std::vector<RegionTime> times;
  for (std::size_t i = 0; i < timeline.regions.size(); ++i) {
    const RegionSamples& region = timeline.regions[i];
    const double seconds = static_cast<double>(region.samples_ns.front()) * 1e-9;
    times.push_back(
        {{seconds, seconds * region.low_factor, seconds * region.high_factor}, busy[i]});
  }
  return times;
}

std::vector<RegionTime> in_child(const std::function<Timeline()>& simulated) {
  const auto numbers = run_in_children({[&simulated] {
    std::vector<double> all;
    for (const auto& [time, busy] : region_times(simulated())) {
      all.insert(all.end(), {time.seconds, time.low, time.high, busy});
    }
    return all;
  }});
  std::vector<RegionTime> times;
  const std::vector<double>& all = numbers.front();
  for (std::size_t i = 0; i + 3 < all.size(); i += 4) {
    times.push_back({{all[i], all[i + 1], all[i + 2]}, all[i + 3]});
  }
  return times;
}

IterationTimes::IterationTimes(const Serving& serving, const Machine& machine,
                               const std::vector<RegionTime>& times)
    : serving_{serving}, machine_{machine}, own_{own_work(serving.engine.kind)} {
  for (std::int64_t i = serving.first_layer(); i < serving.model.layers; ++i) {
    const training::Layer layer = serving.model.layer(i);
    if (layer.has_experts) ++expert_layers_;
    const auto found =
        std::ranges::find(layers_, layer, &std::pair<training::Layer, double>::first);
    if (found != layers_.end()) {
      ++found->second;
    } else {
      layers_.emplace_back(layer, 1);
    }
  }
  std::size_t next = 0;
  for (const GridRow& from : grid_of(serving)) {
    Row row{static_cast<double>(from.size), from.is_graph, {}};
    for (const Batch& batch : from.batches) {
      if (next == times.size()) throw UsageError{"an iteration has no end"};
      const RegionTime& region = times[next++];
      // What experts take longer is hidden where the device waits for the host.
      const double around =
          expert_layers_ > 0 ? expert_layers_ * around_experts_seconds(serving, machine, batch) : 0;
      const double longer = around - region.idle();
      const Time time = later(region.time, std::max(0.0, longer));
      row.points.push_back(
          {attention_seconds(batch), with_host_band(time, region.busy, serving.host)});
    }
    std::ranges::sort(row.points, {}, &Point::attention);
    rows_.push_back(std::move(row));
  }
  for (const Row& row : rows_) (row.is_graph ? graphs_ : others_).push_back(&row);
}

double IterationTimes::attention_seconds(const Batch& batch) const {
  double seconds = 0;
  for (const auto& [layer, count] : layers_) {
    seconds += count * (kernel_seconds(machine_, decode_attention(serving_, layer, batch)) +
                        kernel_seconds(machine_, chunk_attention(serving_, layer, batch)) +
                        kernel_seconds(machine_, index_work(serving_, layer, batch, true)) +
                        kernel_seconds(machine_, index_work(serving_, layer, batch, false)));
  }
  return seconds;
}

/// What our engine's kernels take longer than such attention has to, decoding
/// (serving.foretrace.*). Few requests' keys are split. Of many, a block has a request's keys of
/// one head, and the longest request's blocks end last: two of them share an SM.
double IterationTimes::own_attention_seconds(const Batch& batch) const {
  if (serving_.engine.kind != EngineKind::Foretrace || batch.decodes == 0) return 0;
  static const double kParts = constant("serving.foretrace.parts");
  static const double kFills = constant("serving.foretrace.fills");
  static const double kSmBytes = constant("serving.foretrace.sm_bytes");
  constexpr double kBlocks = 2;  // of an SM: 80 KB of shared memory each
  const double sms = machine_.get(Param::SmCount).value;
  const auto heads = static_cast<double>(batch.decodes * serving_.model.kv_heads) /
                     static_cast<double>(serving_.layout.tensor);
  double seconds = 0;
  for (const auto& [layer, count] : layers_) {
    if (heads < kFills * sms) {
      seconds += count * kParts;
      continue;
    }
    const AttentionWork work = decode_attention(serving_, layer, batch);
    const auto bytes = static_cast<double>(work.bytes);
    const double at_rate = bytes / (sms * kSmBytes);
    const double keys = static_cast<double>(batch.decode_keys);
    const double longer =
        static_cast<double>(batch.longest) * static_cast<double>(batch.decodes) / keys;
    const double last = std::max(0.0, longer - 1) * bytes / heads / (kSmBytes / kBlocks);
    seconds += count * (last + std::max(0.0, at_rate - kernel_seconds(machine_, work)));
  }
  return seconds;
}

/// Linear between the points around, and on as between the last two.
Time IterationTimes::between(const std::vector<const Row*>& rows, double size,
                             double attention) const {
  const auto at = [attention](const Row& row) {
    const auto& points = row.points;
    if (points.size() == 1) return points.front().time;
    std::size_t i = 1;
    while (i + 1 < points.size() && points[i].attention < attention) ++i;
    const double width = points[i].attention - points[i - 1].attention;
    const double share = width > 0 ? (attention - points[i - 1].attention) / width : 0;
    // Less attention than any: no slope is known there, and none is needed.
    return mixed(points[i - 1].time, points[i].time, std::max(share, i == 1 ? 0.0 : share));
  };
  if (rows.size() == 1) return at(*rows.front());
  std::size_t i = 1;
  while (i + 1 < rows.size() && rows[i]->size < size) ++i;
  const double share = (size - rows[i - 1]->size) / (rows[i]->size - rows[i - 1]->size);
  return mixed(at(*rows[i - 1]), at(*rows[i]), std::max(0.0, share));
}

Time IterationTimes::of(const Batch& batch) const {
  Batch asked = batch;
  const std::int64_t graph = graph_of(serving_.engine, batch);
  const bool is_padded = graph > batch.tokens();
  if (is_padded) {
    asked.decode_keys += graph - batch.decodes;  // one key each
    asked.decodes = graph;
  }
  const bool in_graphs = !graphs_.empty() && batch.chunk_tokens == 0;
  Time time = between(in_graphs ? graphs_ : others_, static_cast<double>(asked.tokens()),
                      attention_seconds(asked));
  time = later(time, own_attention_seconds(asked));
  if (serving_.engine.kind == EngineKind::Foretrace && batch.chunk_tokens > 0) {
    time = at_least(time, with_new_sizes(others_.front()->points.front().time));
  }
  const double own = (serving_.host ? serving_.host->factor : 1) *
                     (own_.iteration + own_.request * static_cast<double>(batch.requests()) +
                      own_.token * static_cast<double>(batch.chunk_tokens));
  const double sums = own_sums_seconds(serving_, machine_, asked, expert_layers_);
  return with_experts_band(serving_, batch, later(time, sums + own));
}

Time IterationTimes::of_stage(const Batch& batch) const {
  static const double kBase = constant("serving.one_step_sum");
  const training::Architecture& model = serving_.model;
  const double head = linear_seconds(
      machine_,
      {Precision::BFloat16, model.vocab / serving_.layout.tensor, model.hidden, batch.requests()});
  const double link = serving_.stages_have_nvlink ? machine_.get(Param::NvlinkBandwidth).value
                                                  : nccl::nic_bytes_per_second(machine_);
  const bool crosses = !serving_.stages_have_nvlink && machine_.has(Param::NcclNetExchangeBase);
  const double base = crosses ? machine_.get(Param::NcclNetExchangeBase).value : kBase;
  const double handed = base + static_cast<double>(summed_bytes(serving_, batch.tokens())) / link;
  const Time last = of(batch);
  return at_least(later(last, handed - head), {handed, handed, handed});
}

}  // namespace foretrace::serving
