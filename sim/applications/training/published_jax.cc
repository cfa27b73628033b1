#include "sim/applications/training/published_jax.h"

#include <algorithm>
#include <array>
#include <string>

namespace foretrace::sim {
namespace {

using training::Kept;

constexpr Kept kDots{.queries = true, .output = true, .up = true, .down = true};

constexpr Kept with_attention(Kept kept) {
  kept.attention = true;
  return kept;
}

struct Policy {
  std::string_view words;
  Kept keeps;
};

/// MaxText's get_remat_policy (src/maxtext/layers/decoders.py, 2026-08), the longest name first;
/// "dot only" is Paxml's SAVE_DOT_ONLY, which keeps products, and attention's kernel is none.
constexpr std::array kPolicies{
    Policy{"minimal_with_context", with_attention(kDots)},
    Policy{"minimal_flash", with_attention(kDots)},
    Policy{"minimal", kDots},
    Policy{"save_dot_with_context_except_mlp",
           Kept{.queries = true, .attention = true, .output = true}},
    Policy{"save_dot_except_mlpwi", Kept{.queries = true, .output = true, .down = true}},
    Policy{"save_dot_except_mlp", Kept{.queries = true, .output = true}},
    Policy{"save_qkv_proj", Kept{.queries = true}},
    Policy{"save_out_proj", Kept{.output = true}},
    Policy{"save dot only", kDots},
};

/// MaxText's custom policy: names of checkpoint_name() in a list, "qkv,out,mlpwo".
Kept kept_by_names(std::string_view list) {
  const auto has = [&](std::string_view name) { return list.find(name) != std::string_view::npos; };
  return {.queries = has("qkv") || has("query"),
          .attention = has("context"),
          .output = has("out"),
          .up = has("mlpwi"),
          .down = has("mlpwo")};
}

}  // namespace

std::optional<Kept> kept_by(std::string_view recompute) {
  const auto* const policy = std::ranges::find_if(kPolicies, [&](const Policy& one) {
    return recompute.find(one.words) != std::string_view::npos;
  });
  if (policy != kPolicies.end()) return policy->keeps;
  constexpr std::string_view kSave = "save ";
  const auto at = recompute.find(kSave);
  if (at == std::string_view::npos) return std::nullopt;
  const Kept kept = kept_by_names(recompute.substr(at + kSave.size()));
  return kept.any() ? std::optional{kept} : std::nullopt;
}

/// XLA fuses what is pointwise. Its attention multiplies whole squares, unless Transformer Engine's
/// kernels are asked for. Paxml's layers are recomputed (AutodiffCheckpointType.SAVE_NOTHING of its
/// language models) where the table does not say otherwise.
void describe_jax(const CsvLine& line, training::TrainingStep& step) {
  const std::string_view framework = line.text("framework"), recompute = line.text("recompute");
  const bool is_paxml = framework.find("Paxml") != std::string_view::npos;
  step.compiled = true;
  step.flash_attention =
      !is_paxml || framework.find("Transformer Engine") != std::string_view::npos;
  if (is_paxml && recompute.empty()) step.recompute = training::Recompute::Full;
  if (const auto kept = kept_by(recompute)) {
    step.recompute = training::Recompute::Full;
    step.keeps = *kept;
  }
}

}  // namespace foretrace::sim
