// An iteration of the engine as operations: what its batch of tokens goes through. Iterations of
// chosen sizes become one Program, a region for each, whose times a simulator interpolates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/base/text/diagnostic.h"
#include "scenarios/program/program.h"
#include "scenarios/serving/description.h"

namespace foretrace::serving {

/// A batch, as sums over its requests. Those that decode have one query each, chunks of prompts
/// more.
struct Batch {
  std::int64_t decodes = 0;      ///< requests
  std::int64_t decode_keys = 0;  ///< tokens that these attend to, of all of them
  std::int64_t longest = 0;      ///< of the request that attends to most
  std::int64_t guesses = 0;      ///< tokens of these that were guessed, to be checked
  std::int64_t chunks = 0;       ///< requests
  std::int64_t chunk_tokens = 0;
  std::int64_t chunk_keys = 0;   ///< tokens that these attend to: cached ones and their own
  std::int64_t chunk_pairs = 0;  ///< of a query and a key that it sees

  std::int64_t tokens() const { return decodes + guesses + chunk_tokens; }
  std::int64_t requests() const { return decodes + chunks; }
  void add(const Batch& other);
  friend auto operator<=>(const Batch&, const Batch&) = default;
};

/// Of a kernel of attention over so many queries, in one layer on one GPU.
struct AttentionWork {
  std::int64_t flops = 0, bytes = 0, width = 0;
};
/// Of prompts latent attention makes every head's keys and values again; of requests that decode,
/// and where an indexer chooses keys, heads share the short vectors.
bool expands_keys(const training::Architecture& model);
AttentionWork decode_attention(const Serving& serving, const training::Layer& layer,
                               const Batch& batch);
AttentionWork chunk_attention(const Serving& serving, const training::Layer& layer,
                              const Batch& batch);
/// The indexer's scores of so many keys for their queries, in 8 bits; 0 where the layer has none.
/// Of requests that decode, or of prompts' chunks.
AttentionWork index_work(const Serving& serving, const training::Layer& layer, const Batch& batch,
                         bool is_decoding);
/// A gated delta rule over prompts' tokens in chunks.
AttentionWork delta_rule_work(const Serving& serving, std::int64_t tokens);

/// The two grouped products of a layer's experts on one GPU: all of its experts that the tokens
/// reach, each with an even share of them.
struct ExpertWork {
  std::int64_t experts = 0, rows = 0;  ///< reached, and tokens of each
  std::int64_t copies = 0;             ///< of tokens, for all of them
  std::int64_t width = 0;              ///< of an expert, this GPU's part
};
/// Of so many tokens of each group.
ExpertWork expert_work(const Serving& serving, std::int64_t tokens);

/// Requests of the CUDA graph that computes such a batch; 0: it is called kernel by kernel.
std::int64_t graph_of(const Engine& engine, const Batch& batch);

/// Iterations one behind the other, each a region with its index for a name, on the GPUs of one
/// engine, or of its pipeline's last stage; batches are those of each of its groups. Graphs are
/// captured before. Times of the host's own work between them are not in it. Of sums that the
/// engine's own kernels compute there is none (adds_itself).
Program iterations(const Serving& serving, const std::vector<Batch>& batches, const Program& head,
                   const SourceSpot& at);

/// Bytes of a group's rows: of an all-reduce, of which a layer has two where it is split.
std::int64_t summed_bytes(const Serving& serving, std::int64_t tokens);
/// Whether the engine adds them up by a kernel of its own, in one step, every GPU reading all
/// others' memory: small ones between GPUs that NVLink joins. vLLM's custom_all_reduce takes up to
/// 8 MiB; the others' are taken to be as that.
bool adds_itself(const Serving& serving, std::int64_t tokens);

/// Whether groups give each other the rows of experts by such kernels: where NVLink joins them all.
bool exchanges_itself(const Serving& serving);

}  // namespace foretrace::serving
