#include "sim/applications/training/measured_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/packed_file.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/words.h"
#include "scenarios/base/values/json_depth.h"
#include "sim/engine/children.h"

namespace foretrace::sim {
namespace {

using MeasuredJson = nlohmann::json;

/// Throws UsageError for what is no count.
std::int64_t whole(const MeasuredJson& c, const char* key, std::int64_t least = 1) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const MeasuredJson& value = c.at(key);
  const bool is_whole = value.is_number_integer() && value >= least && value <= kMost;
  if (is_whole) return value.get<std::int64_t>();
  throw UsageError{
      fmt::format("'{}' is {}, not a whole number from {} to {}", key, value.dump(), least, kMost)};
}

training::Architecture model_of(const MeasuredJson& c) {
  training::Architecture model;
  const bool gpt = c.at("style") == "gpt";
  model.name = c.at("style");
  model.layers = whole(c, "layers");
  model.hidden = whole(c, "hidden");
  model.heads = whole(c, "heads");
  model.kv_heads = whole(c, "kv_heads");
  model.head_dim = whole(c, "head_dim");
  model.ffn = whole(c, "ffn");
  model.vocab = whole(c, "vocab");
  model.tied = c.at("tied");
  model.positions = gpt ? whole(c, "sequence") : 0;
  if (gpt && c.contains("positions")) {
    model.positions = std::max(model.positions, whole(c, "positions", 0));
  }
  model.gated = model.rms_norm = !gpt;
  model.biases = model.joined_qkv = gpt;
  return model;
}

training::TrainingStep step_of(const MeasuredJson& c, std::string& refused) {
  training::TrainingStep step;
  step.model = model_of(c);
  step.sequence = whole(c, "sequence");
  step.micro_batch = whole(c, "micro_batch");
  step.passes = std::max(whole(c, "accumulation"), whole(c, "microbatches", 0));
  step.return_outputs = c.value("return_outputs", true);
  const std::string parallel = c.at("parallel");
  if (parallel == "ddp") step.sharding = training::Sharding::Ddp;
  if (parallel == "fsdp") step.sharding = training::Sharding::Fsdp;
  const std::int64_t ranks = c.contains("processes") ? whole(c, "processes") : 2;
  if (parallel == "ddp" || parallel == "fsdp") step.data = ranks;
  if (parallel == "tp") step.tensor = ranks;
  if (parallel == "pp") step.pipeline = ranks;
  const std::string precision = c.at("precision");
  step.float32_parameters = precision == "amp";
  step.sequence_parallel = c.at("sequence_parallel");
  step.loss_parallel = c.at("loss_parallel");
  step.reshard = c.at("reshard_after_forward");
  step.float32_reduce = c.at("reduce_dtype") == "fp32";
  step.bucket_bytes = whole(c, "bucket_cap_mb") << 20;
  step.bucket_views = c.at("gradient_as_bucket_view");
  step.reduce_every_pass = !c.at("no_sync").get<bool>();
  const std::string recompute = c.at("recompute");
  if (recompute == "full") step.recompute = training::Recompute::Full;
  if (recompute == "selective") step.recompute = training::Recompute::Selective;
  if (c.at("optimizer") == "foreach") step.optimizer = training::OptimizerKernel::Foreach;
  if (c.at("compile") != "none") refused = "compiled";
  if (precision != "amp" && precision != "bf16") refused = precision;
  if (c.at("loss_chunks") != 1 || c.at("norm") != "module") refused = "modules of another kind";
  return step;
}

/// 0 for what is no number of a rank.
std::uint32_t rank_number(const std::string& rank) {
  std::uint32_t number = 0;
  std::from_chars(rank.data(), rank.data() + rank.size(), number);
  return number;
}

/// Of a step of `whole_us`, as hw/pytorch/shares.py wrote them; empty where there are none. Before
/// the first kernel of any rank and behind the last one's end the GPU idles.
std::optional<StepShares> traced_shares(const MeasuredJson& trace, double whole_us) {
  const MeasuredJson shares = trace.value("shares", MeasuredJson::object());
  const double step = shares.value("step_us", 0.0);
  if (step <= 0) return std::nullopt;
  const double whole = std::max(step, whole_us);
  double sum = 0;
  const auto of = [&](const char* key) {
    const double us = shares.at(key).get<double>();
    if (!(us >= 0)) throw UsageError{fmt::format("{} of shares is {}, less than nothing", key, us)};
    sum += us;
    return us / whole;
  };
  const StepShares all{of("computing_us"), of("communication_us"), of("waiting_us"),
                       of("idle_us") + 1 - step / whole};
  constexpr double kRounding = 1;  // us
  if (std::abs(sum - step) > kRounding) {
    throw UsageError{fmt::format("shares add up to {} us of a step of {} us", sum, step)};
  }
  return all;
}

/// Of the rank with the longest profiled window: its shares, and how much longer it was than the
/// step without the profiler. A step begins with its host's first call, before any kernel.
void take_trace(const MeasuredJson& ranks, MeasuredStep& measured) {
  double longest = 0, whole_us = 0;
  for (const auto& [rank, values] : ranks.items()) {
    const MeasuredJson trace = values.value("trace", MeasuredJson::object());
    const double window = trace.value("window_us", 0.0);
    const double whole = std::max(window, 1e3 * trace.value("profiled_step_ms", 0.0));
    whole_us = std::max(whole_us, whole);
    if (window <= longest) continue;
    longest = window;
    measured.traced_rank = rank_number(rank);
    measured.exposed = trace.value("exposed_communication_us", 0.0) / whole;
    measured.idle = (trace.value("idle_us", 0.0) + whole - window) / whole;
    measured.traced_seconds = window * 1e-6;
  }
  ProcessShares of_ranks;
  for (const auto& [rank, values] : ranks.items()) {
    const auto shares = traced_shares(values.value("trace", MeasuredJson::object()), whole_us);
    if (shares) of_ranks[rank_number(rank)] = *shares;
  }
  if (!of_ranks.empty() && of_ranks.size() == ranks.size()) measured.shares = mean_of(of_ranks);
}

MeasuredStep measured_step(const MeasuredJson& line) {
  MeasuredStep measured;
  measured.id = line.at("id");
  measured.may_fit = line.at("mark") == "fit";
  const std::string verdict = line.value("verdict", "");  // none: to be predicted first
  measured.out_of_memory = verdict == "out_of_memory";
  if (verdict == "measured") {
    measured.seconds = line.at("step_time_ms_median").get<double>() * 1e-3;
    measured.peak = line.at("allocated_peak_bytes");
    take_trace(line.at("ranks"), measured);
  }
  measured.step = step_of(line.at("configuration"), measured.refused);
  if (const auto problem = training::what_is_too_large(measured.step)) throw UsageError{*problem};
  return measured;
}

}  // namespace

std::vector<MeasuredStep> read_measured_steps(const std::filesystem::path& file) {
  std::istringstream in{read_packed_text_file(file, kLargestText)};
  std::vector<MeasuredStep> steps;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    refuse_deep_json(line, fmt::format("{}:{}", file.string(), number));
    try {
      steps.push_back(measured_step(MeasuredJson::parse(line)));
    } catch (const MeasuredJson::exception& error) {
      throw UsageError{fmt::format("{}:{}: {}", file.string(), number, json_reason(error.what()))};
    } catch (const UsageError& error) {
      throw UsageError{fmt::format("{}:{}: {}", file.string(), number, error.what())};
    }
  }
  return steps;
}

std::vector<std::optional<PredictedStep>> predict_steps(const std::vector<MeasuredStep>& steps,
                                                        const Machine& machine) {
  std::vector<Job> jobs;
  for (const MeasuredStep& step : steps) {
    jobs.emplace_back([&step, &machine] {
      return step.refused.empty() ? numbers_of(predict_step(step.step, machine, step.id))
                                  : std::vector<double>{};
    });
  }
  std::vector<std::optional<PredictedStep>> predicted;
  for (const std::vector<double>& numbers : run_in_children(jobs)) {
    predicted.push_back(step_from(numbers));
  }
  return predicted;
}

}  // namespace foretrace::sim
