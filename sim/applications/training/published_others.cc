#include "sim/applications/training/published_others.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "sim/applications/training/published_jax.h"
#include "sim/applications/training/published_megatron.h"

namespace foretrace::sim {
namespace {

using training::Framework;
using training::Sharding;

bool has_words(const CsvLine& line, std::string_view column, std::string_view what) {
  return line.has(column) && line.text(column).find(what) != std::string_view::npos;
}

std::int64_t degree(const CsvLine& line, std::string_view column) {
  constexpr std::int64_t kMost = 1 << 20;
  if (!line.has(column)) return 1;
  return std::clamp<std::int64_t>(whole_number(line, column), 1, kMost);
}

/// Of February 2022's Megatron-DeepSpeed are BLOOM's rows, of Megatron-LM's age all others'.
Framework framework_of(const CsvLine& line) {
  if (has_words(line, "framework", "Megatron-DeepSpeed") && has_words(line, "id", "bloom")) {
    return Framework::MegatronDeepSpeed;
  }
  return has_words(line, "framework", "Megatron") ? Framework::Megatron : Framework::PyTorch;
}

/// Returns whether the name is one of a family that is known.
bool describe_family(const CsvLine& line, training::TrainingStep& step) {
  std::string name{line.text("model")};
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto is = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  training::Architecture& model = step.model;
  constexpr std::array kGated{"llama", "mistral", "mixtral", "qwen", "olmo"};
  model.gated = model.rms_norm = std::ranges::any_of(kGated, is);
  const bool is_gpt = is("gpt") || is("bloom") || framework_of(line) != Framework::PyTorch;
  if (is_gpt && !model.gated) {
    model.biases = model.joined_qkv = model.tied = true;
    model.positions = step.sequence;
  }
  if (line.has("experts")) model.experts = whole_number(line, "experts");
  if (model.experts > 0) model.top_k = degree(line, "top_k");
  return (model.gated || is_gpt) && !is("scout") && !is("maverick");  // those have a shared expert
}

/// Whether one of the words between commas and semicolons is so: "no compile" is another.
bool is_compiled(const CsvLine& line) {
  std::string_view rest = line.text("overlap_options");
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(",;"), rest.size());
    std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
    if (word == "torch.compile" || word == "compile") return true;
  }
  return false;
}

/// torchtitan compiled blocks alone until 2025-04-02 (bbb1b616e): "compiling loss function causes
/// CUDA errors". Its tables of before say their month, torchao's the PyTorch of that spring.
bool has_eager_loss(const CsvLine& line) {
  return has_words(line, "framework", "torchtitan") &&
         (has_words(line, "source", "2024") || has_words(line, "notes", "torch 2.7.0a0"));
}

/// KempnerForge 5666d0d: parameters, and so moments, are in bfloat16 (distributed/parallel.py,
/// build_parallel_model), the compiled model ends with logits that all ranks gather
/// (tensor_parallel.py), and training/loss.py takes cross_entropy of these.
void describe_kempner(training::TrainingStep& step) {
  step.float32_parameters = step.loss_parallel = step.fused_loss = false;
  step.half_loss = true;
}

/// Of "fsdp 128 x dp 4" 128; of "hsdp" a node. 0 where all replicas share.
std::int64_t shard_of(const CsvLine& line, const training::TrainingStep& step) {
  const std::string_view words = line.text("zero_or_fsdp");
  std::int64_t shard = 0;
  if (words.starts_with("hsdp")) shard = degree(line, "gpus_per_node");
  const std::string_view kFsdp = "fsdp ";
  if (words.starts_with(kFsdp) && words.find(" x dp ") != std::string_view::npos) {
    std::from_chars(words.data() + kFsdp.size(), words.data() + words.size(), shard);
  }
  return shard > 1 && shard < step.replicas() && step.replicas() % shard == 0 ? shard : 0;
}

void describe_sharding(const CsvLine& line, training::TrainingStep& step) {
  if (step.replicas() == 1) return;
  step.sharding = Sharding::Ddp;
  if (has_words(line, "zero_or_fsdp", "fsdp") || has_words(line, "zero_or_fsdp", "hsdp") ||
      has_words(line, "zero_or_fsdp", "zero3")) {
    step.sharding = Sharding::Fsdp;
    step.float32_parameters = true;
    step.reshard = !has_words(line, "zero_or_fsdp", "shard_grad_op");
    step.shard = shard_of(line, step);
  }
  if (has_words(line, "zero_or_fsdp", "zero1") ||
      has_words(line, "zero_or_fsdp", "distributed optimizer")) {
    step.sharding = Sharding::Zero1;
  }
  if (has_words(line, "zero_or_fsdp", "zero2")) step.sharding = Sharding::Zero2;
}

/// What the readers of scenarios refuse, too (scenarios/training_step/check.cc).
std::string not_expanded(const CsvLine& line, const training::TrainingStep& step) {
  const bool is_eager = step.framework == Framework::PyTorch;
  if (step.sharding == Sharding::Fsdp && step.pipeline > 1) return "FSDP beside a pipeline";
  if (!is_eager && step.sharding == Sharding::Fsdp) return "Megatron's calls with FSDP";
  if (step.model.experts > 0) {
    if (step.model.experts % step.expert != 0 || step.replicas() % step.expert != 0 ||
        step.model.top_k > step.model.experts) {
      return "experts do not split";
    }
    if (step.model.biases) return "experts with biases";
    if (step.tensor > 1 && !step.sequence_parallel) return "experts beside whole sequences";
  }
  if (step.is_narrow() && (!is_eager || step.model.experts > 0)) {
    return "less than 16 bits with experts, or under Megatron-LM of before 2023";
  }
  return what_does_not_divide(step, whole_number(line, "gpus"));
}

std::string_view part_of(std::string_view gpu) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kParts{
      {{"H100-96GB", "H100-SXM-96"},
       {"A100-40GB-SXM", "A100-SXM-40"},
       {"A100-80GB-SXM", "A100-SXM-80"},
       {"H100-80GB-SXM", "H100-SXM"},
       {"H200-141GB-SXM", "H200-SXM"},
       {"H200-NVL", "H200-NVL"},
       {"B200-180GB", "B200"},
       {"B300", "B300"},
       {"GB200", "GB200"},
       {"GB300", "GB300"},
       {"MI300X", "MI300X"},
       {"MI325X", "MI325X"},
       {"MI355X", "MI355X"},
       {"MI250X", "MI250X"}}};
  for (const auto& [name, part] : kParts) {
    if (gpu.starts_with(name)) return part;
  }
  return {};
}

constexpr bool is_rack(std::string_view gpu) {
  return gpu.starts_with("GB200") || gpu.starts_with("GB300");
}

/// What stands between nodes. Where a source says only how much a node has, it is shared by eight.
std::string_view network_of(const CsvLine& line) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kNetworks{
      {{"1600 Gb/s", "roce-200g"},
       {"400 Gb/s per node", "efa1"},
       {"400 Gb/s RDMA per GPU", "roce-400g"},
       {"800 Gb/s IB per node", "roce-100g"},
       {"8x 800 Gb/s", "ib-xdr"},
       {"800 Gb/s per GPU", "ib-xdr"},
       {"8x 400 Gb/s", "ib-ndr"},
       {"8x400G", "ib-ndr"},
       {"NDR 400", "ib-ndr"},
       {"400 Gb/s RoCE per GPU", "roce-400g"},
       {"400 Gb/s IB per GPU", "ib-ndr"},
       {"400 Gb/s per GPU", "ib-ndr"},
       {"32x100G EFA", "efa2"},
       {"NVL72 + InfiniBand", "ib-ndr"},
       {"200 Gb/s per node", "ib-hdr"}}};
  for (const auto& [words, part] : kNetworks) {
    if (has_words(line, "network", words)) return part;
  }
  const bool is_hdr =
      has_words(line, "network", "8x HDR 200") || has_words(line, "network", "8x200G");
  if (is_hdr) return "ib-hdr";
  if (!takes_makers_network(line)) return {};
  // DGX A100 has NICs of 200, all that came after of 400 Gb/s for each GPU.
  return line.text("gpu").starts_with("A100") ? "ib-hdr" : "ib-ndr";
}

}  // namespace

std::string read_as(const CsvLine& line) {
  if (is_megatron_core(line) || has_words(line, "framework", "llm-foundry")) return {};
  switch (framework_of(line)) {
    case Framework::Megatron:
      return "Megatron-LM's calls";
    case Framework::MegatronDeepSpeed:
      return "Megatron-DeepSpeed's calls";
    case Framework::PyTorch:
    case Framework::MegatronCore:
      break;
  }
  return "PyTorch's eager calls";
}

std::string describe_other(const CsvLine& line, training::TrainingStep& step) {
  if (has_words(line, "model", "LoRA") || has_words(line, "notes", "QLoRA"))
    return "adapters (LoRA) by other frameworks than NeMo";
  if (has_words(line, "gpu", "power limited")) return "its GPUs' power limit is not stated";
  if (whole_number(line, "gpus") == 0) return "GPUs not stated";
  if (has_words(line, "recompute", "ratio not stated")) return "how many layers are recomputed";
  if (has_words(line, "recompute", "offload")) return "activations that go to the host's memory";
  if (step.model.hidden == 0 || step.model.layers == 0 || step.model.ffn == 0 ||
      step.model.vocab == 0 || step.sequence == 0) {
    return "sizes not stated";
  }
  if (!describe_family(line, step)) return fmt::format("model: {}", line.text("model"));
  step.framework = framework_of(line);
  step.tensor = degree(line, "tp");
  step.context = degree(line, "cp");
  step.pipeline = degree(line, "pp");
  step.chunks = step.pipeline > 1 ? degree(line, "vpp") : 1;
  step.expert = step.model.experts > 0 ? degree(line, "ep") : 1;
  step.data = std::max<std::int64_t>(
      1, whole_number(line, "gpus") / (step.tensor * step.context * step.pipeline));
  step.loss_parallel = step.tensor > 1;
  step.sequence_parallel = step.tensor > 1 && has_words(line, "sequence_parallel", "yes");
  if (has_words(line, "recompute", "selective")) step.recompute = training::Recompute::Selective;
  if (has_words(line, "recompute", "every 2nd")) {
    step.recompute = training::Recompute::Full;
    step.recompute_every = 2;
  }
  const bool is_per_op =
      has_words(line, "recompute", "per op") || has_words(line, "recompute", "per-op");
  if (is_per_op) step.recompute = training::Recompute::Products;
  if (line.number("kv_heads") > 0) step.model.kv_heads = whole_number(line, "kv_heads");
  step.passes = std::max<std::int64_t>(
      1, whole_number(line, "global_batch") / (step.micro_batch * step.data));
  describe_sharding(line, step);
  step.narrow = narrow_of(line);
  if (has_words(line, "framework", "JAX")) describe_jax(line, step);
  if (step.framework == Framework::PyTorch) {
    // nanotron/parallel/tensor_parallel; kempnerforge/distributed/tensor_parallel.py.
    step.dtensor = !has_words(line, "framework", "nanotron");
    step.gathers_each = has_words(line, "framework", "KempnerForge");
    step.compiled = step.compiled || is_compiled(line);
    step.fused_loss = is_compiled(line) && !has_eager_loss(line);
    if (has_words(line, "framework", "KempnerForge")) describe_kempner(step);
    step.return_outputs = false;
  } else {
    step.flash_attention = false;
    step.float32_reduce = has_words(line, "precision", "fp32 gradient");
    step.dropout = step.framework == Framework::MegatronDeepSpeed;
    const std::int64_t rows = 128 * step.tensor;  // --make-vocab-size-divisible-by
    step.model.vocab = (step.model.vocab + rows - 1) / rows * rows;
  }
  return not_expanded(line, step);
}

std::int64_t gpus_together(const CsvLine& line) {
  const std::int64_t gpus = std::max<std::int64_t>(1, whole_number(line, "gpus"));
  std::int64_t each = std::max<std::int64_t>(1, whole_number(line, "gpus_per_node"));
  constexpr std::int64_t kRack = 72;
  if (!is_rack(line.text("gpu")) || gpus % each != 0) return each;
  const std::int64_t tray = each;
  for (std::int64_t more = tray; more <= std::min(gpus, kRack); more += tray) {
    if (gpus % more == 0) each = more;
  }
  return each;
}

bool takes_makers_network(const CsvLine& line) {
  return has_words(line, "network", "not stated") || has_words(line, "network", "see systems json");
}

std::string composed_of(const CsvLine& line) {
  const std::string_view part = part_of(line.text("gpu"));
  if (part.empty()) return {};
  const std::int64_t gpus = std::max<std::int64_t>(1, whole_number(line, "gpus"));
  const std::int64_t each = gpus_together(line);
  if (gpus <= each) return fmt::format("{}x{}", each, part);
  const std::string_view network = network_of(line);
  if (network.empty() || gpus % each != 0) return {};
  return fmt::format("{}x{}+{}:{}", each, part, network, gpus / each);
}

}  // namespace foretrace::sim
