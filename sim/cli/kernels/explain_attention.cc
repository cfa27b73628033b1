#include "sim/cli/kernels/explain_attention.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "models/cost/attention.h"
#include "models/cost/library.h"
#include "scenarios/base/text/errors.h"
#include "sim/cli/kernels/kernel_terms.h"

namespace foretrace {
namespace {

constexpr const char* kPrefill = "attention_prefill";
constexpr const char* kDecode = "attention_decode";

double tokens_of(const std::string& text) {
  std::uint64_t tokens = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, tokens);
  constexpr std::uint64_t kMost = 1'000'000'000;
  if (code != std::errc{} || rest != end || tokens < 1 || tokens > kMost) {
    throw UsageError{fmt::format(
        "'{}' is no number of tokens\n  hint: of a sequence, or in the cache: 8192", text)};
  }
  return static_cast<double>(tokens);
}

/// Causal attention of whole sequences, or of one new token of each to its cache and itself.
cost::LibraryWork work_of(const AttentionKernel& kernel) {
  constexpr double kHalf = 2, kOfAPair = 4;
  const double tokens = tokens_of(kernel.tokens), batch = static_cast<double>(kernel.batch);
  const double heads = kernel.heads, width = kernel.width;
  const double kv_heads = kernel.kv_heads > 0 ? kernel.kv_heads : heads;
  const bool decodes = kernel.name == kDecode;
  const double pairs = decodes ? tokens + 1 : tokens * (tokens + 1) / 2;
  const double queries = decodes ? 1 : tokens, keys = decodes ? tokens + 1 : tokens;
  return {.kernel = KernelKind::AttentionForward,
          .flops = kOfAPair * batch * heads * pairs * width,
          .bytes = 2 * kHalf * batch * width * (queries * heads + keys * kv_heads),
          .width = width};
}

struct AttentionExplained {
  cost::LibraryWork work;
  double seconds = 0;
  bool by_facts = false;
  cost::AttentionParts parts;  ///< by facts
  std::vector<Share> shares;
  std::vector<TermShare> terms;
};

AttentionExplained attention_explained(const Machine& machine, const AttentionKernel& kernel) {
  AttentionExplained all{.work = work_of(kernel), .parts = {}, .shares = {}, .terms = {}};
  const auto time = [&](Reading& read) { return cost::library_cost(read, all.work); };
  Reading read{machine};
  all.seconds = to_seconds(time(read).alone);
  all.by_facts = cost::attention_is_by_facts(read, all.work);
  if (all.by_facts) {
    all.parts =
        cost::attention_parts({all.work.flops, all.work.bytes, all.work.width},
                              cost::read_attention_facts(read), cost::read_attention_ratios(read));
  }
  all.shares = shares_of(machine, [&](Reading& nudged) { return to_seconds(time(nudged).alone); });
  all.terms = term_shares(machine, time);
  return all;
}

std::string attention_json(const Machine& machine, const AttentionKernel& kernel,
                           const AttentionExplained& all) {
  using Json = nlohmann::ordered_json;
  Json parameters = Json::array(), terms = Json::array(), parts = Json::object();
  for (const Share& share : all.shares) {
    parameters.push_back({{"parameter", info(share.param).key}, {"share", share.share}});
  }
  for (const TermShare& share : all.terms) {
    terms.push_back({{"term", info(share.term).id}, {"seconds", share.seconds}});
  }
  if (all.by_facts) {
    parts = {{"start", all.parts.start},
             {"memory", all.parts.moved},
             {"pairs", all.parts.pairs},
             {"blocks", all.parts.blocks}};
  }
  const Json json{{"schema_version", 1},     {"kind", "explain-kernel"},
                  {"machine", machine.name}, {"kernel", kernel.name},
                  {"flops", all.work.flops}, {"bytes", all.work.bytes},
                  {"seconds", all.seconds},  {"by", all.by_facts ? "facts" : "measured rates"},
                  {"parts", parts},          {"parameters", parameters},
                  {"terms", terms}};
  return json.dump(2) + "\n";
}

std::string attention_parts_text(const AttentionExplained& all) {
  if (!all.by_facts) {
    return "  by rates of this GPU's own kernels: flops over what heads of this width reach\n";
  }
  const cost::AttentionParts& parts = all.parts;
  const auto us = [](double seconds) { return seconds * 1e6; };
  return fmt::format(
      "  by the GPU's facts, and ratios that public tables of other GPUs showed\n"
      "  start {:.2f}, memory {:.2f}, pairs of a query and a key {:.2f}, blocks of queries {:.2f} "
      "us\n"
      "  a pair: {:.0f} % of it on tensor cores alone, {:.0f} % exponentials and sums alone; both "
      "run side by side\n",
      us(parts.start), us(parts.moved), us(parts.pairs), us(parts.blocks), 100 * parts.tensor,
      100 * parts.vector);
}

}  // namespace

std::vector<std::string> attention_names() { return {kPrefill, kDecode}; }

std::string explain_attention(const Machine& machine, const AttentionKernel& kernel, bool json) {
  const AttentionExplained all = attention_explained(machine, kernel);
  if (json) return attention_json(machine, kernel, all);
  const std::uint32_t kv_heads = kernel.kv_heads > 0 ? kernel.kv_heads : kernel.heads;
  std::string text =
      fmt::format("{} of {} x {} tokens, {} heads of {}, {} of keys, in 16 bits on {}: {:.2f} us\n",
                  kernel.name, kernel.batch, kernel.tokens, kernel.heads, kernel.width, kv_heads,
                  machine.name, all.seconds * 1e6);
  text += fmt::format("  {:.4g} GFLOP at {:.1f} TFLOP/s, {:.4g} MB at {:.0f} GB/s\n",
                      all.work.flops * 1e-9, all.work.flops / all.seconds * 1e-12,
                      all.work.bytes * 1e-6, all.work.bytes / all.seconds * 1e-9);
  text += attention_parts_text(all) + "\nparameters that decide it\n";
  for (const Share& share : all.shares) {
    text += fmt::format("  {:+6.2f} %  {}\n", share.share, info(share.param).key);
  }
  return text + "  (a parameter 1 % larger makes it so much longer)\n" + term_text(all.terms);
}

}  // namespace foretrace
