// LoRA: two small products beside a frozen layer's, whose own parameters have no gradients. As
// NeMo's ParallelLinearAdapter and peft's Linear call them: down to the rank, up to the outputs,
// scaled, and added to the layer's result.
#include <string>

#include "scenarios/training_step/decoder.h"

namespace foretrace::training {

bool Decoder::has_adapter(const std::string& name) const {
  const Adapters& adapters = step_.adapters;
  if (adapters.rank == 0) return false;
  if (name == "qkv" || name == "query" || name == "key" || name == "value") {
    return adapters.queries;
  }
  if (name == "output") return adapters.output;
  return adapters.mlp && (name == "up" || name == "gate" || name == "down");
}

/// Whether a linear layer's input is saved: for its weights' gradient, or its adapter's.
bool Decoder::reads_input_again(const std::string& name) const {
  return !step_.is_frozen() || has_adapter(name);
}

/// Of layers that share an input the first one's adapter saves it. Attention saves what "output"
/// reads, the activation what "down" reads.
bool Decoder::saves_adapters_input(const std::string& name) const {
  const bool joined = model_.joined_qkv || step_.is_megatron_core();
  if (name == "up") return !model_.gated || step_.is_megatron_core();
  return name == "gate" || name == (joined ? "qkv" : "query");
}

void Decoder::adapt(const std::string& name, const LinearSizes& sizes) {
  if (!has_adapter(name)) return;
  const std::int64_t rank = step_.adapters.rank;
  const std::int64_t input = sizes.input() * kBf16, output = sizes.gradient() * kBf16;
  const std::int64_t read = saves_adapters_input(name) ? input : 0;
  const Memory::Id saved = save(read + sizes.tokens * rank * kBf16);
  out_.host(FrameworkWork::Linear, 2);
  out_.forward_product("adapter_down", sizes.inputs, rank, sizes.tokens);
  out_.forward_product("adapter_up", rank, sizes.outputs, sizes.tokens);
  pointwise("scale_adapter", 2 * output, FrameworkWork::Forward);
  pointwise("add_adapter", 3 * output, FrameworkWork::Forward);
  on_backward([this, sizes, rank, saved, input, output] {
    const Memory::Id gradient = memory_.allocate(Part::Temporary, output + input);
    pointwise("scale_adapter_gradient", 2 * output, FrameworkWork::Backward);
    out_.host(FrameworkWork::Product, 2);
    out_.weights_product("adapter_up_weights", rank, sizes.outputs, sizes.tokens);
    out_.inputs_product("adapter_up_inputs", rank, sizes.outputs, sizes.tokens);
    out_.weights_product("adapter_down_weights", sizes.inputs, rank, sizes.tokens);
    out_.inputs_product("adapter_down_inputs", sizes.inputs, rank, sizes.tokens);
    pointwise("add_gradients", 3 * input, FrameworkWork::Backward);
    for (const std::int64_t elements : {rank * sizes.outputs, rank * sizes.inputs}) {
      out_.host(FrameworkWork::Accumulate);
      hooks_.gradient(elements);
    }
    memory_.free(gradient);
    memory_.free(saved);
  });
}

std::int64_t Decoder::adapter_parameters(const Layer& layer) const {
  const Adapters& adapters = step_.adapters;
  const bool joined = model_.joined_qkv || step_.is_megatron_core();
  std::int64_t widths = 0;
  if (adapters.queries) widths += (joined ? 1 : 3) * model_.hidden + q_ + kv_ + v_;
  if (adapters.output) widths += mixed_ + model_.hidden;
  if (adapters.mlp && !layer.has_experts) {
    const std::int64_t gates = model_.gates() - 1;  // without "down"
    widths += (joined ? 1 : gates) * model_.hidden + gates * ffn_ + ffn_ + model_.hidden;
  }
  return adapters.rank * widths;
}

std::int64_t Decoder::trained_parameters() const {
  if (!step_.is_frozen()) return held_;
  std::int64_t all = 0;
  for (std::int64_t group = 0; group + 1 < groups(); ++group) {
    all += adapter_parameters(layer_of(group));
  }
  return all;
}

}  // namespace foretrace::training
