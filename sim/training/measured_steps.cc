#include "sim/training/measured_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scenarios/read/scenario.h"
#include "scenarios/text/errors.h"
#include "scenarios/text/text_file.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"
#include "sim/training/usage.h"

namespace foretrace::sim {
namespace {

using MeasuredJson = nlohmann::json;

training::Architecture model_of(const MeasuredJson& c) {
  training::Architecture model;
  const bool gpt = c.at("style") == "gpt";
  model.name = c.at("style");
  model.layers = c.at("layers");
  model.hidden = c.at("hidden");
  model.heads = c.at("heads");
  model.kv_heads = c.at("kv_heads");
  model.head_dim = c.at("head_dim");
  model.ffn = c.at("ffn");
  model.vocab = c.at("vocab");
  model.tied = c.at("tied");
  model.positions = gpt ? c.at("sequence").get<std::int64_t>() : 0;
  model.gated = model.rms_norm = !gpt;
  model.biases = model.joined_qkv = gpt;
  return model;
}

training::TrainingStep step_of(const MeasuredJson& c, std::string& refused) {
  training::TrainingStep step;
  step.model = model_of(c);
  step.sequence = c.at("sequence");
  step.micro_batch = c.at("micro_batch");
  step.passes =
      std::max(c.at("accumulation").get<std::int64_t>(), c.at("microbatches").get<std::int64_t>());
  const std::string parallel = c.at("parallel");
  if (parallel == "ddp") step.sharding = training::Sharding::Ddp;
  if (parallel == "fsdp") step.sharding = training::Sharding::Fsdp;
  if (parallel == "ddp" || parallel == "fsdp") step.data = 2;
  if (parallel == "tp") step.tensor = 2;
  if (parallel == "pp") step.pipeline = 2;
  const std::string precision = c.at("precision");
  step.float32_parameters = precision == "amp";
  step.sequence_parallel = c.at("sequence_parallel");
  step.loss_parallel = c.at("loss_parallel");
  step.reshard = c.at("reshard_after_forward");
  step.float32_reduce = c.at("reduce_dtype") == "fp32";
  step.bucket_bytes = c.at("bucket_cap_mb").get<std::int64_t>() << 20;
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

/// Of the rank with the longest profiled window.
double exposed_share(const MeasuredJson& ranks) {
  double share = -1, longest = 0;
  for (const auto& [rank, values] : ranks.items()) {
    const MeasuredJson trace = values.value("trace", MeasuredJson::object());
    const double window = trace.value("window_us", 0.0);
    if (window <= longest) continue;
    longest = window;
    share = trace.value("exposed_communication_us", 0.0) / window;
  }
  return share;
}

MeasuredStep measured_step(const MeasuredJson& line) {
  MeasuredStep measured;
  measured.id = line.at("id");
  measured.may_fit = line.at("mark") == "fit";
  measured.out_of_memory = line.at("verdict") == "out_of_memory";
  if (line.at("verdict") == "measured") {
    measured.seconds = line.at("step_time_ms_median").get<double>() * 1e-3;
    measured.peak = line.at("allocated_peak_bytes");
    measured.exposed = exposed_share(line.at("ranks"));
  }
  measured.step = step_of(line.at("configuration"), measured.refused);
  return measured;
}

std::vector<double> predict_one(const MeasuredStep& measured, const Machine& machine) {
  const training::Expansion expansion = training::expand(measured.step);
  const std::string text =
      fmt::format("schema_version: 1\nname: {}\n{}", measured.id, expansion.text);
  const auto read = read_scenario(text, measured.id);
  if (!read) throw std::runtime_error{render(read.error(), text)};
  const MemoryVerdict verdict = memory_verdict(expansion, machine);
  std::vector<double> numbers{0, 0, 0, 0, verdict.bytes, verdict.fits ? 1.0 : 0.0};
  if (!verdict.fits) return numbers;
  const Timeline timeline = simulate(read->program, machine, Fidelity::Flow);
  if (const auto usage = usage_of(timeline)) {
    numbers[0] = usage->seconds;
    numbers[1] = usage->computing;
    numbers[2] = usage->exposed;
    numbers[3] = usage->idle;
  }
  return numbers;
}

}  // namespace

std::vector<MeasuredStep> read_measured_steps(const std::filesystem::path& file) {
  std::istringstream in{read_text_file(file)};
  std::vector<MeasuredStep> steps;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    try {
      steps.push_back(measured_step(MeasuredJson::parse(line)));
    } catch (const MeasuredJson::exception& error) {
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
      return step.refused.empty() ? predict_one(step, machine) : std::vector<double>{};
    });
  }
  std::vector<std::optional<PredictedStep>> predicted;
  for (const std::vector<double>& n : run_in_children(jobs)) {
    if (n.empty()) {
      predicted.emplace_back();
    } else {
      predicted.push_back(
          PredictedStep{n[0], n[1], n[2], n[3], static_cast<std::int64_t>(n[4]), n[5] != 0});
    }
  }
  return predicted;
}

}  // namespace foretrace::sim
