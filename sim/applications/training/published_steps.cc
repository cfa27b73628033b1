#include "sim/applications/training/published_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>

#include "models/machine/machine.h"
#include "reports/timeline/statistics.h"
#include "scenarios/base/text/csv.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "sim/applications/training/predict_step.h"
#include "sim/applications/training/published_megatron.h"
#include "sim/applications/training/published_others.h"
#include "sim/engine/children.h"

namespace foretrace::sim {
namespace {

/// Between A100 nodes eight NICs of 25 GB/s, between H100 nodes of 50 GB/s, as our files assume.
bool has_known_network(const CsvLine& line) {
  const auto is = [&](std::string_view gpu, std::string_view network) {
    return line.text("gpu").starts_with(gpu) &&
           line.text("network").find(network) != std::string_view::npos;
  };
  return is("A100", "1600 Gb/s") || is("H100", "8x 400 Gb/s");
}

/// Which machine stands for a line's. Tables of llm-foundry's H100 are of 2023, before cuDNN's
/// attention; those of the A100 were made with PyTorch 1.13 and FlashAttention in Triton
/// (llm-foundry, scripts/train/benchmarking/submit_benchmarks.py: image, attn_impl). BLOOM's GPUs
/// have a file. All others are composed of parts, but for what our files are of.
std::string machine_of(const CsvLine& line, const PublishedStep& published) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kFoundry{
      {{"A100-40GB-SXM", "a100-nvswitch-8-triton"},
       {"A100-80GB-SXM", "a100-80gb-nvswitch-8-triton"},
       {"H100-80GB-SXM", "h100-nvswitch-8-flash2"}}};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kFiles{
      {{"A100-80GB-SXM", "a100-80gb-nvswitch-8"},
       {"H100-80GB-SXM", "h100-nvswitch-8"},
       {"H200-141GB-SXM", "h200-nvswitch-8"},
       {"B200-180GB", "b200-nvswitch-8"}}};
  if (line.text("network").find("Omni-Path") != std::string_view::npos) {
    return "a100-80gb-omnipath-8";
  }
  const auto file_in = [&](const auto& files) {
    const auto found =
        std::ranges::find(files, published.gpu, [](const auto& pair) { return pair.first; });
    return found == files.end() ? std::string{} : std::string{found->second};
  };
  const bool is_near = published.one_node || has_known_network(line);
  // Our files have no rates below 16 bits.
  const bool has_rates = narrow_of(line) == training::Narrow::None;
  if (published.read_as.empty() && !is_megatron_core(line)) {
    return is_near && has_rates ? file_in(kFoundry) : composed_of(line);
  }
  const std::string file = is_near && has_rates ? file_in(kFiles) : std::string{};
  return file.empty() ? composed_of(line) : file;
}

/// The number behind `words`.
std::optional<double> number_behind(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  const char* const begin = text.data() + at + words.size();
  double number = 0;
  const auto read = std::from_chars(begin, text.data() + text.size(), number);
  return read.ec == std::errc{} && number > 0 ? std::optional{number} : std::nullopt;
}

/// What PyTorch's allocator gave out at most. GB are 2^30 bytes, too: torchtitan's `_to_gib`
/// (components/metrics.py), KempnerForge's metrics/memory.py.
double published_peak(std::string_view notes) {
  if (const auto mebibytes = number_behind(notes, "peak allocated ")) return *mebibytes * 0x1p20;
  return number_behind(notes, "peak memory ").value_or(0) * 0x1p30;
}

double seconds_of(const CsvLine& line, double tokens, double gpus) {
  const double value = line.number("value");
  if (value <= 0) return 0;
  if (line.text("metric") == "step_s") return value;
  // Of rates that count arithmetic in a way of their own the table says the step's time, too.
  if (const auto stated = number_behind(line.text("notes"), "equals step_s ")) return *stated;
  return line.text("metric") == "tokens_per_s_per_gpu" ? tokens / gpus / value : 0;
}

/// Arithmetic in 16 bits, or in fewer: what decides the rate of products.
std::string_view bits_of(std::string_view precision) {
  if (precision.find("fp4") != std::string_view::npos) return "4 bits";
  return precision.find("fp8") != std::string_view::npos ? "8 bits" : "16 bits";
}

/// A GPT as mosaicml/llm-foundry builds and trains it (Composer, FSDP1): LayerNorm, biases, learned
/// positions, flash-attn's loss, gradients reduced after every micro-batch. PURE mixed precision
/// reduces them in bfloat16, DEFAULT in float32. Its AdamW is no fused kernel.
void describe_mpt(const CsvLine& line, training::TrainingStep& step) {
  training::Architecture& model = step.model;
  model.name = "gpt";
  model.gated = model.rms_norm = false;
  model.biases = model.joined_qkv = model.tied = true;
  model.positions = step.sequence;
  step.sharding = training::Sharding::Fsdp;
  step.flat_parameters = step.reduce_every_pass = step.fused_loss = true;
  step.float32_parameters = true;
  step.float32_reduce = line.text("notes").find("PURE") == std::string_view::npos;
  step.optimizer = training::OptimizerKernel::Foreach;
  step.narrow = narrow_of(line);
}

/// torchtitan's and nanotron's runs on H100s are of 2024 and 2025. PyTorch before 2.11 takes
/// FlashAttention-2 there unless it is asked for cuDNN's (pytorch/pytorch, pull request 138522, and
/// check_prefer_cudnn_attention of aten's sdp_utils.cpp), and nanotron calls that one by name
/// (flash_attn_varlen_func). Our H100's is cuDNN's, of PyTorch 2.11.
std::string attention_of(const CsvLine& line) {
  const std::string_view framework = line.text("framework");
  const bool is_older = framework.find("torchtitan") != std::string_view::npos ||
                        framework.find("nanotron") != std::string_view::npos;
  return is_older && line.text("gpu").starts_with("H100") ? "h100-nvswitch-8-flash2" : "";
}

/// `file`'s attention on `machine`.
Machine with_attention(Machine machine, const std::string& file) {
  if (file.empty()) return machine;
  const Machine other = load_machine(file);
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (info(param).key.starts_with("library.attention") && other.has(param)) {
      machine.set(param, other.get(param));
    }
  }
  return machine;
}

/// What a line's source says of its software that no kernel table here is of; else empty.
std::string trap_of(const CsvLine& line) {
  const bool of_2023 = line.text("framework").find("llm-foundry") != std::string_view::npos &&
                       line.text("gpu").starts_with("H100");
  if (!of_2023) return {};
  return "PyTorch 2.0 with CUDA 11.8's cuBLAS (sweep.sh's image), older than our products on an "
         "H100";
}

/// What load_machine says of names of parts that do not go together; else empty. A table names
/// few machines, in many lines.
std::string what_is_wrong_with(const std::string& machine) {
  static std::map<std::string, std::string> known;
  const auto [found, is_new] = known.try_emplace(machine);
  if (!is_new) return found->second;
  try {
    load_machine(machine);
  } catch (const UsageError& error) {
    const std::string text = error.what();
    found->second = text.substr(0, text.find('\n'));
  }
  return found->second;
}

/// Why a line is not predicted.
std::string refusal(const CsvLine& line, const PublishedStep& published,
                    const std::string& undescribed) {
  const training::TrainingStep& step = published.step;
  if (!undescribed.empty()) return undescribed;
  if (published.machine.empty()) return "no part is of its GPU or network";
  if (published.seconds <= 0) return "no step time";
  if (auto wrong = what_is_wrong_with(published.machine); !wrong.empty()) return wrong;
  if (whole_number(line, "global_batch") != step.micro_batch * step.passes * step.data) {
    return "batch is no multiple";
  }
  return {};
}

PublishedStep published_step(const CsvLine& line) {
  PublishedStep published;
  published.id = line.text("id");
  published.source = published.id.substr(
      0, static_cast<std::size_t>(
             std::ranges::find_if(
                 published.id, [](unsigned char c) { return std::isdigit(c) != 0 || c == '-'; }) -
             published.id.begin()));
  published.gpu = line.text("gpu");
  published.quality = line.text("quality").empty() ? 'C' : line.text("quality").front();
  published.gpus = std::max<std::int64_t>(1, whole_number(line, "gpus"));
  const std::int64_t in_a_node = gpus_together(line);
  published.one_node = published.gpus <= in_a_node;
  training::TrainingStep& step = published.step;
  step.sequence = whole_number(line, "seq_len");
  step.micro_batch = std::max<std::int64_t>(1, whole_number(line, "micro_batch"));
  step.data = published.gpus;
  step.nodes = published.one_node ? 1 : published.gpus / in_a_node;
  const std::int64_t batch = whole_number(line, "global_batch");
  step.passes = std::max<std::int64_t>(1, batch / (step.micro_batch * step.data));
  step.model.layers = whole_number(line, "layers");
  step.model.hidden = whole_number(line, "hidden");
  step.model.heads = std::max<std::int64_t>(1, whole_number(line, "heads"));
  step.model.kv_heads = step.model.heads;
  step.model.head_dim = step.model.hidden / step.model.heads;
  step.model.ffn = whole_number(line, "ffn_hidden");
  step.model.vocab = whole_number(line, "vocab");
  const bool full = line.text("recompute").starts_with("full");
  if (full) step.recompute = training::Recompute::Full;
  std::string undescribed;
  published.read_as = read_as(line);
  published.machine = machine_of(line, published);
  if (takes_makers_network(line) && published.machine.find('+') != std::string::npos) {
    published.assumed = "the network that its maker sells with it";
  }
  if (is_megatron_core(line)) {
    undescribed = describe_megatron(line, step);
  } else if (published.read_as.empty()) {
    describe_mpt(line, step);
  } else {
    undescribed = describe_other(line, step);
  }
  if (const auto problem = training::what_is_too_large(step)) {
    throw UsageError{fmt::format("{}: {}", line.where(), *problem)};
  }
  const auto tokens = static_cast<double>(batch) * static_cast<double>(step.sequence);
  published.seconds = seconds_of(line, tokens, static_cast<double>(published.gpus));
  published.flops = 6 * tokens *
                    (line.number("params_b") * 1e9 +
                     static_cast<double>(step.model.layers * step.model.hidden * step.sequence));
  published.kind =
      fmt::format("{}, {}, {}", published.gpu.substr(0, published.gpu.find('-')),
                  bits_of(line.text("precision")), full ? "full recomputation" : "none or some");
  published.sequences = std::max(1.0, static_cast<double>(batch));
  published.model =
      fmt::format("{}, {} layers of {}, {} heads, {} tokens, {} x {}, {}", published.source,
                  step.model.layers, step.model.hidden, step.model.heads, step.sequence,
                  published.gpus, published.gpu, bits_of(line.text("precision")));
  published.trap = trap_of(line);
  published.attention = attention_of(line);
  // bigscience, train/tr11-176B-ml: its .slurm files set it, since runs hung without.
  if (published.source == "bloom") published.environment = {{"CUDA_LAUNCH_BLOCKING", "1"}};
  published.peak = published_peak(line.text("notes"));
  published.refused = refusal(line, published, undescribed);
  return published;
}

double rate_of(const PublishedStep& step) {
  return step.flops / step.seconds / static_cast<double>(step.gpus);
}

}  // namespace

std::vector<PublishedStep> read_published_steps(const std::filesystem::path& file) {
  std::vector<PublishedStep> steps;
  for (const CsvLine& line : read_csv(file)) steps.push_back(published_step(line));
  return steps;
}

std::optional<double> yardstick(const PublishedStep& step, const std::vector<PublishedStep>& all) {
  std::vector<double> rates;
  for (const PublishedStep& other : all) {
    const bool counts = other.kind == step.kind && other.source != step.source;
    if (counts && other.seconds > 0 && other.flops > 0) rates.push_back(rate_of(other));
  }
  if (rates.empty()) return std::nullopt;
  return step.flops / median(rates) / static_cast<double>(step.gpus);
}

std::vector<std::optional<PredictedStep>> predict_published(
    const std::vector<PublishedStep>& steps) {
  std::vector<Job> jobs;
  for (const PublishedStep& step : steps) {
    jobs.emplace_back([&step] {
      if (!step.refused.empty()) return std::vector<double>{};
      try {
        const Machine machine = with_attention(load_machine(step.machine), step.attention);
        return numbers_of(predict_step(step.step, machine, step.id, step.environment));
      } catch (const UsageError& error) {  // a group that no collective is spread over
        print_error("{}: not predicted: {}\n", step.id, error.what());
        return std::vector<double>{};
      }
    });
  }
  std::vector<std::optional<PredictedStep>> predicted;
  for (const std::vector<double>& numbers : run_in_children(jobs)) {
    predicted.push_back(step_from(numbers));
  }
  return predicted;
}

}  // namespace foretrace::sim
