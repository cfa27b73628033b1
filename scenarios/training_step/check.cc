#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "scenarios/training_step/read.h"

namespace foretrace::training {
namespace {

/// "4, 8, 16": degrees up to 64 that divide all of these.
std::string degrees_for(std::initializer_list<std::int64_t> sizes) {
  constexpr std::int64_t kMost = 64;
  std::string text;
  for (std::int64_t degree = 1; degree <= kMost; ++degree) {
    if (std::ranges::any_of(sizes, [&](std::int64_t size) { return size % degree != 0; })) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(degree);
  }
  return text;
}

/// The value below `path`, "batch/sequence"; null where the file does not say it.
const YamlNode* value_at(const YamlNode& node, std::string_view path) {
  const std::string_view key = path.substr(0, path.find('/'));
  const auto found =
      std::ranges::find(node.entries, key, [](const YamlEntry& e) { return e.key.text; });
  if (found == node.entries.end()) return nullptr;
  if (key.size() == path.size()) return &found->value;
  return value_at(found->value, path.substr(key.size() + 1));
}

class Checker {
 public:
  Checker(Reader& reader, const TrainingStep& step, const YamlNode& node)
      : reader_{reader}, step_{step}, model_{step.model}, node_{node} {}

  void run() {
    if (const auto problem = what_is_too_large(step_)) {
      return error(*problem, "is a size in another unit than it should be?");
    }
    if (model_.head_dim < 1) {
      return error(fmt::format("{} heads of a width of {} in all", model_.heads, model_.hidden),
                   "'heads' divides 'hidden', or 'head_dim' says how wide one is",
                   {"model/heads", "model"});
    }
    splits("heads", model_.heads);
    if (model_.kv_heads < model_.heads || model_.heads % step_.tensor == 0) {
      splits("key and value heads", model_.kv_heads);
    }
    splits("the feed-forward width", model_.ffn);
    splits("the vocabulary", model_.vocab);
    if (model_.heads % model_.kv_heads != 0) {
      error(fmt::format("{} heads do not share {} key and value heads evenly", model_.heads,
                        model_.kv_heads),
            "'kv_heads' divides 'heads'", {"model/kv_heads", "model"});
    }
    if (model_.latent.keys > 0 && step_.tensor > 1) {
      error("latent attention is expanded without tensor parallelism", "'tensor: 1'",
            {"parallel/tensor"});
    }
    if (model_.linear.key_heads > 0 || model_.indexer.keys > 0) {
      error(fmt::format("{} is not expanded in a training step",
                        model_.indexer.keys > 0 ? "attention whose keys an indexer chooses"
                                                : "linear attention"),
            "'serving:' has it; 'foretrace capture' takes a step of your own script");
    }
    pipeline();
    if (step_.is_megatron() && step_.sharding == Sharding::Fsdp) {
      error("'framework: megatron' and 'megatron-deepspeed' are expanded for whole parameters only",
            "'sharding: ddp', 'zero1' or 'zero2'", {"sharding"});
    }
    if (step_.is_deepspeed()) deepspeed();
    if (model_.experts > 0 || step_.expert > 1) experts();
    context();
    if (step_.tensor > 1 && step_.autocasts()) {
      error("tensor parallel is expanded for bfloat16 parameters only",
            "'precision: {parameters: bfloat16}', or 'sharding: fsdp' beside it",
            {"precision/parameters"});
    }
    framework();
    if (step_.is_narrow()) narrow();
    extras();
    if (step_.float16 && !step_.is_eager()) {
      error("float16 is expanded for 'framework: pytorch' only", "'compute: bfloat16'",
            {"precision/compute"});
    }
    if (step_.shard > 0) hybrid();
    if (step_.sharding == Sharding::Fsdp && step_.pipeline > 1) {
      error("'fsdp' gathers parameters for every micro-batch of a pipeline: not expanded",
            "'sharding: zero1' or 'pipeline: 1'", {"sharding"});
    }
  }

 private:
  using Options = std::initializer_list<std::string_view>;

  /// Points at the first of `options` that the file says, "parallel/tensor"; else at the step.
  void error(const std::string& message, const std::string& hint, Options options = {}) {
    const YamlNode* at = nullptr;
    for (const std::string_view option : options) {
      if (at == nullptr) at = value_at(node_, option);
    }
    reader_.problems.error(at == nullptr ? node_ : *at, message, hint);
  }
  void splits(const char* what, std::int64_t size) {
    if (size % step_.tensor == 0) return;
    error(
        fmt::format("{} {} cannot be split over {} tensor parallel ranks", size, what,
                    step_.tensor),
        "'tensor' may be " + degrees_for({model_.heads, model_.kv_heads, model_.ffn, model_.vocab}),
        {"parallel/tensor"});
  }
  void extras() {
    const bool has_adapters = step_.is_frozen();
    if (has_adapters && (step_.sharding == Sharding::Fsdp || model_.experts > 0 ||
                         model_.latent.keys > 0 || step_.autocasts())) {
      error("adapters are expanded beside dense layers in bfloat16, whole on each process",
            "'sharding: ddp' or 'zero1', without 'parameters: float32'", {"adapters"});
    }
    if (step_.compiled && !step_.is_eager()) {
      error(
          "'compiled' is PyTorch's torch.compile: Megatron's calls are fused as its source has "
          "them",
          "'framework: pytorch'", {"compiled"});
    }
    if (step_.half_loss && (step_.fused_loss || step_.loss_parallel || step_.hands_out_outputs())) {
      error("a loss in bfloat16 is expanded where it is separate and whole",
            "'loss: separate', 'parallel: {loss: false}', 'return_outputs: false'", {"loss_type"});
    }
    if (step_.recompute_every > 1 && step_.recompute != Recompute::Full) {
      error("'recompute_every' is of whole layers", "'recompute: full'", {"recompute_every"});
    }
    if (step_.keeps.any()) keeps();
    if (step_.recompute == Recompute::Products && !step_.is_eager()) {
      error("'recompute: products' is torchtitan's", "'framework: pytorch', or 'recompute: full'",
            {"recompute"});
    }
  }
  void hybrid() {
    if (step_.sharding != Sharding::Fsdp || step_.replicas() % step_.shard != 0) {
      error(fmt::format("{} replicas are no copies that {} share", step_.replicas(), step_.shard),
            "'sharding: fsdp', and a divisor of the replicas", {"fsdp/shard"});
    }
    if (step_.expert > 1) {
      error("experts are shared over all replicas, not within a copy", "'expert: 1', or no 'shard'",
            {"fsdp/shard"});
    }
  }
  void keeps() {
    if (step_.recompute != Recompute::Full || !step_.is_eager()) {
      error("'keeps' is what layers keep that PyTorch or JAX recomputes",
            "'recompute: full' with 'framework: pytorch'", {"keeps"});
    }
    const bool is_dense = model_.experts == 0 && model_.latent.keys == 0;
    if (!is_dense || !step_.flash_attention) {
      error("'keeps' is expanded for dense layers, with a kernel for attention",
            "'recompute: full' alone", {"keeps"});
    }
  }
  void narrow() {
    const bool is_core = step_.is_megatron_core();
    if (!is_core && (!step_.is_eager() || model_.experts > 0 || model_.latent.keys > 0)) {
      error("less than 16 bits are expanded for Megatron-Core, and for PyTorch's dense layers",
            "'framework: megatron-core', or 'compute: bfloat16'", {"precision/compute"});
    }
    if (!is_core && step_.narrow == Narrow::Delayed) {
      error("delayed scales are Transformer Engine's", "'framework: megatron-core'",
            {"precision/scales"});
    }
    if (const auto problem = what_is_no_narrow_size(step_)) {
      error(*problem, "widths and tokens that are, or 'compute: bfloat16'", {"precision/compute"});
    }
  }
  void framework() {
    if (step_.overlaps_tensor && !(step_.is_megatron_core() && step_.sequence_parallel)) {
      error("collectives run beside products where Megatron splits sequences",
            "'framework: megatron-core' and 'parallel: {sequence: true}'", {"parallel/overlap"});
    }
    if (step_.context > 1 && !step_.flash_attention && !step_.is_deepspeed()) {
      error("attention to parts of a sequence needs the kernel's softmax sums",
            "'attention: flash', or 'context: 1'", {"attention", "parallel/context"});
    }
    if (!step_.is_megatron_core()) return;
    if (step_.sharding == Sharding::Fsdp) {
      error("Megatron's own sharding is expanded, which is that of the optimizer",
            "'sharding: zero1', or 'framework: pytorch'", {"sharding"});
    }
    constexpr auto kWide = "Megatron computes with bfloat16 parameters beside float32 ones";
    if (step_.float32_parameters) {
      error(kWide, "no 'parameters: float32'", {"precision/parameters"});
    }
    if (!step_.fused_loss) error("Megatron has a fused loss", "no 'loss: separate'", {"loss"});
  }
  void deepspeed() {
    constexpr auto kSchedule = "DeepSpeed's pipeline engine has one schedule";
    if (step_.chunks > 1) error(kSchedule, "no 'virtual'", {"parallel/virtual"});
    if (step_.schedule == Schedule::GPipe) {
      error(kSchedule, "no 'schedule: gpipe'", {"parallel/schedule"});
    }
    if (step_.sequence_parallel) {
      error("Megatron-DeepSpeed of February 2022 has whole sequences", "no 'sequence: true'",
            {"parallel/sequence"});
    }
    if (step_.context > 1) {
      error("Megatron-DeepSpeed of February 2022 has no context parallelism",
            "'context: 1', or 'framework: megatron-core'", {"parallel/context"});
    }
    if (step_.flash_attention) {
      error("Megatron-DeepSpeed of February 2022 has no flash attention: it came out in May",
            "'attention: unfused', its default, or 'framework: megatron-core'", {"attention"});
    }
    if (step_.float32_parameters) {
      error("Megatron-DeepSpeed of February 2022 has 16-bit parameters", "no 'parameters: float32'",
            {"precision/parameters"});
    }
  }
  void context() {
    const std::int64_t parts = step_.context > 1 ? 2 * step_.context : 1;
    if (step_.sequence % parts != 0) {
      error(fmt::format("sequences of {} tokens cannot be split over {} context parallel ranks, "
                        "two parts for each",
                        step_.sequence, step_.context),
            fmt::format("'sequence' as a multiple of {}", parts), {"batch/sequence"});
    } else if (step_.sequence_parallel && step_.part() % step_.tensor != 0) {
      error(fmt::format("{} tokens of a sequence cannot be split over {} tensor parallel ranks",
                        step_.part(), step_.tensor),
            fmt::format("'sequence' as a multiple of {}",
                        std::lcm(parts, step_.context * step_.tensor)),
            {"batch/sequence"});
    }
  }
  void experts() {
    if (model_.experts == 0) {
      error("'expert' splits experts, of which this model has none", "'expert: 1'",
            {"parallel/expert"});
      return;
    }
    if (model_.top_k < 1 || model_.top_k > model_.experts) {
      error(fmt::format("a token cannot go to {} of {} experts", model_.top_k, model_.experts),
            fmt::format("'top_k' from 1 to {}", model_.experts), {"model/top_k", "model"});
    }
    if (model_.experts % step_.expert != 0) {
      error(fmt::format("{} experts do not split over {} processes", model_.experts, step_.expert),
            "'expert' may be " + degrees_for({model_.experts, step_.replicas()}),
            {"parallel/expert"});
    }
    if (step_.replicas() % step_.expert != 0) {
      error(fmt::format("{} data parallel ranks are not whole groups of {} that share experts",
                        step_.replicas(), step_.expert),
            "'expert' may be " + degrees_for({model_.experts, step_.replicas()}),
            {"parallel/expert"});
    }
    if (step_.tensor > 1 && !step_.sequence_parallel) {
      error("experts beside tensor parallelism are expanded with split sequences only",
            "'parallel: {sequence: true}', as Megatron asks for",
            {"parallel/sequence", "parallel/tensor"});
    }
    if (model_.shared_ffn % step_.tensor != 0)
      splits("the shared expert's width", model_.shared_ffn);
    if (model_.biases) {
      error("experts are expanded without biases only", "'style: llama'", {"model/style", "model"});
    }
  }
  void pipeline() {
    if (model_.layers < step_.pipeline ||
        (model_.layers % step_.pipeline != 0 && step_.is_eager() && !step_.ends_are_layers())) {
      error(fmt::format("{} layers do not fill {} pipeline stages evenly", model_.layers,
                        step_.pipeline),
            "'pipeline' may be " + degrees_for({model_.layers}), {"parallel/pipeline"});
    }
    if (step_.chunks > 1) chunks();
    if (step_.pipeline > 1 && step_.passes < step_.pipeline) {
      error(fmt::format("{} micro-batches leave stages of a pipeline of {} idle", step_.passes,
                        step_.pipeline),
            fmt::format("'passes' of at least {}", step_.pipeline),
            {"batch/passes", "batch/global", "batch"});
    }
  }

  void chunks() {
    if (step_.pipeline == 1 || step_.schedule == Schedule::GPipe) {
      error("'virtual' interleaves the stages of a pipeline's 1f1b schedule",
            "'pipeline' of at least 2, 'schedule: 1f1b', or no 'virtual'", {"parallel/virtual"});
      return;
    }
    const std::int64_t each = step_.model.layers / step_.pipeline;
    if (step_.model.layers % (step_.pipeline * step_.chunks) != 0 && !step_.ends_are_layers()) {
      error(fmt::format("{} layers of a stage are not {} equal chunks", each, step_.chunks),
            "'virtual' may be " + degrees_for({each}), {"parallel/virtual"});
    }
    if (step_.passes % step_.pipeline != 0) {
      error(fmt::format("{} micro-batches do not go through {} interleaved stages in whole turns",
                        step_.passes, step_.pipeline),
            fmt::format("'passes' as a multiple of {}", step_.pipeline),
            {"batch/passes", "batch/global", "batch"});
    }
  }

  Reader& reader_;
  const TrainingStep& step_;
  const Architecture& model_;
  const YamlNode& node_;
};

}  // namespace

void check(Reader& reader, const TrainingStep& step, const YamlNode& node) {
  Checker{reader, step, node}.run();
}

}  // namespace foretrace::training
