#include "scenarios/serving/iteration.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

#include "scenarios/base/text/errors.h"
#include "scenarios/check/check.h"
#include "scenarios/serving/calls.h"

namespace foretrace::serving {
namespace {

constexpr std::int64_t kOfAPair = 4;  // flops for each element of a head: the score, what it weighs
constexpr std::int64_t kChunk = 64;   // tokens: flash-linear-attention's chunk_gated_delta_rule

/// Of keys that one request attends to on average, those that a window or an indexer leaves.
std::int64_t attended_keys(const Serving& serving, const training::Layer& layer, std::int64_t keys,
                           std::int64_t requests) {
  if (requests == 0) return keys;
  const std::int64_t chosen = serving.model.indexer.keys;
  if (layer.window > 0) keys = std::min(keys, requests * layer.window);
  return chosen > 0 ? std::min(keys, requests * chosen) : keys;
}

/// A query's elements, a key's and a value's, as the kernel on one GPU has them.
struct Widths {
  std::int64_t heads, keys, key, value;
};
Widths widths_of(const Serving& serving) {
  const training::Architecture& model = serving.model;
  const std::int64_t heads = model.heads / serving.layout.tensor;
  if (model.latent.keys > 0) {  // heads share one short vector, which is key and value
    return {heads, 1, model.latent.keys + model.latent.rotary, model.latent.keys};
  }
  return {heads, std::max<std::int64_t>(1, model.kv_heads / serving.layout.tensor), model.head_dim,
          model.value_width()};
}

AttentionWork work_of(const Serving& serving, const Widths& widths, std::int64_t queries,
                      std::int64_t keys, std::int64_t pairs) {
  const std::int64_t element = serving.float8_cache ? 1 : kHalf;
  const bool is_shared = serving.model.latent.keys > 0 && widths.keys == 1;
  const std::int64_t cached = is_shared ? widths.key : widths.key + widths.value;
  const std::int64_t both = widths.key + widths.value;
  return {.flops = kOfAPair * pairs * widths.heads * both / 2,
          .bytes = queries * widths.heads * both * kHalf + keys * widths.keys * cached * element,
          .width = widths.key};
}

/// Experts that so many tokens reach, where each chooses evenly.
std::int64_t reached(const training::Architecture& model, std::int64_t rows) {
  const double all = static_cast<double>(model.experts);
  const double missed =
      std::pow(1 - static_cast<double>(model.top_k) / all, static_cast<double>(rows));
  return std::max<std::int64_t>(1, std::llround(all * (1 - missed)));
}

/// Of so many, spread evenly over `parts`, those of the part that has most.
std::int64_t share_of(std::int64_t many, std::int64_t parts) { return (many + parts - 1) / parts; }

/// Of the GPUs that share layers; or of the groups, where these give each other rows by NCCL. Not
/// of both (sim/applications/serving/predict.h refuses that).
void add_communicator(const Serving& serving, Program& program) {
  if (program.processes == 1) return;
  Communicator made;
  made.name = serving.layout.tensor > 1 ? "tensor_parallel" : "groups";
  for (std::uint32_t rank = 0; rank < program.processes; ++rank) made.members.push_back({rank, 0});
  program.communicators.push_back(std::move(made));
  program.comms.push_back({0, 0});
}

}  // namespace

void Batch::add(const Batch& other) {
  decodes += other.decodes;
  decode_keys += other.decode_keys;
  longest = std::max(longest, other.longest);
  guesses += other.guesses;
  chunks += other.chunks;
  chunk_tokens += other.chunk_tokens;
  chunk_keys += other.chunk_keys;
  chunk_pairs += other.chunk_pairs;
}

AttentionWork decode_attention(const Serving& serving, const training::Layer& layer,
                               const Batch& batch) {
  if (layer.is_linear) return {};
  const std::int64_t keys = attended_keys(serving, layer, batch.decode_keys, batch.decodes);
  const std::int64_t queries = batch.decodes + batch.guesses;
  const std::int64_t each = batch.decodes > 0 ? (queries + batch.decodes - 1) / batch.decodes : 1;
  return work_of(serving, widths_of(serving), queries, keys, each * keys);
}

AttentionWork chunk_attention(const Serving& serving, const training::Layer& layer,
                              const Batch& batch) {
  if (layer.is_linear) return {};
  const std::int64_t pairs = attended_keys(serving, layer, batch.chunk_pairs, batch.chunk_tokens);
  Widths widths = widths_of(serving);
  if (expands_keys(serving.model)) {
    const training::Architecture& model = serving.model;
    widths = {widths.heads, widths.heads, model.head_dim, model.value_width()};
  }
  return work_of(serving, widths, batch.chunk_tokens, batch.chunk_keys, pairs);
}

bool expands_keys(const training::Architecture& model) {
  return model.latent.keys > 0 && model.indexer.keys == 0;
}

AttentionWork index_work(const Serving& serving, const training::Layer& layer, const Batch& batch,
                         bool is_decoding) {
  if (!layer.indexes) return {};
  const training::Indexer& indexer = serving.model.indexer;
  const std::int64_t queries = is_decoding ? batch.decodes + batch.guesses : batch.chunk_tokens;
  const std::int64_t keys = is_decoding ? batch.decode_keys : batch.chunk_keys;
  const std::int64_t pairs = is_decoding ? keys : batch.chunk_pairs;
  if (queries == 0) return {};
  return {.flops = 2 * pairs * indexer.heads * indexer.head_dim,
          .bytes = queries * indexer.heads * indexer.head_dim + keys * index_bytes(serving.model) +
                   pairs * kFloat,
          .width = indexer.head_dim};
}

AttentionWork delta_rule_work(const Serving& serving, std::int64_t tokens) {
  const training::Linear& linear = serving.model.linear;
  const std::int64_t tensor = serving.layout.tensor;
  const std::int64_t key = linear.key_dim, value = linear.value_dim;
  const std::int64_t heads = linear.value_heads / tensor;
  // Of a token and head: the state's three products, and the chunk's with itself: keys, what
  // solves them twice, scores, values.
  const std::int64_t flops = 2 * (3 * key * value + kChunk * (3 * key + 2 * value));
  const std::int64_t elements = 5 * linear.key_width() / tensor + heads * (6 * value + 2 * key) +
                                2 * heads * key * value / kChunk;
  return {.flops = tokens * heads * flops, .bytes = tokens * elements * kHalf, .width = key};
}

ExpertWork expert_work(const Serving& serving, std::int64_t tokens) {
  const training::Architecture& model = serving.model;
  const Layout& layout = serving.layout;
  const std::int64_t rows = tokens * layout.data;
  ExpertWork work{.copies = share_of(rows * model.top_k, layout.expert),
                  .width = model.ffn / layout.expert_tensor()};
  work.experts = share_of(reached(model, rows), layout.expert);
  work.rows = share_of(work.copies, work.experts);
  return work;
}

std::int64_t summed_bytes(const Serving& serving, std::int64_t tokens) {
  return tokens * serving.model.hidden * kHalf;
}

bool adds_itself(const Serving& serving, std::int64_t tokens) {
  constexpr std::int64_t kMost = 8LL << 20;
  constexpr std::int64_t kMostGpus = 8;
  const std::int64_t gpus = serving.layout.tensor;
  return serving.engine.kind != EngineKind::Foretrace && serving.has_nvlink && gpus > 1 &&
         gpus <= kMostGpus && summed_bytes(serving, tokens) <= kMost;
}

bool exchanges_itself(const Serving& serving) {
  return serving.engine.kind != EngineKind::Foretrace && serving.groups_have_nvlink;
}

std::int64_t graph_of(const Engine& engine, const Batch& batch) {
  if (!engine.cuda_graphs) return 0;
  if (engine.kind != EngineKind::Foretrace) return std::max<std::int64_t>(1, batch.tokens());
  if (batch.chunk_tokens > 0) return 0;
  const auto decodes = static_cast<std::uint64_t>(std::max<std::int64_t>(1, batch.decodes));
  return static_cast<std::int64_t>(std::bit_ceil(decodes));
}

Program iterations(const Serving& serving, const std::vector<Batch>& batches, const Program& head,
                   const SourceSpot& at) {
  Program program = head_of(head);
  const bool alike = serving.layout.data == 1 || exchanges_itself(serving);  // one group says all
  program.processes =
      static_cast<std::uint32_t>(alike ? serving.layout.tensor : serving.layout.stage_gpus());
  program.devices = 1;
  add_default_streams(program);
  add_communicator(serving, program);
  Calls calls{serving, program, at};
  std::vector<std::uint32_t> graphs;
  for (const Batch& batch : batches) {
    graphs.push_back(static_cast<std::uint32_t>(program.graphs.size()));
    if (graph_of(serving.engine, batch) == 0) continue;
    program.graphs.push_back({fmt::format("graph_{}", program.graphs.size())});
    calls.capture(graphs.back(), batch);
  }
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const bool is_graph = graph_of(serving.engine, batches[i]) > 0;
    calls.is_eager(!is_graph);
    calls.region(fmt::format("iteration_{}", i), [&] {
      calls.send(batches[i]);
      is_graph ? calls.launch(graphs[i]) : calls.forward(batches[i]);
      calls.fetch(batches[i]);
    });
  }
  HostThread thread{"engine", std::vector<std::uint32_t>(program.processes), calls.take()};
  std::iota(thread.processes.begin(), thread.processes.end(), 0U);
  program.threads.push_back(std::move(thread));
  Problems problems{program.file};
  complete_program(program, problems);
  FORETRACE_CHECK(problems.error_count() == 0, "iterations are a program");
  program.hash = hash_of(program);
  return program;
}

}  // namespace foretrace::serving
