// What `serving:` says: a model, an engine that answers requests with it, and the requests. Plain
// values; read.cc reads and judges them. Times in nanoseconds, sizes in tokens, shares in
// millionths: whole numbers, so that every implementation draws the same (../serving.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/architecture/architecture.h"
#include "scenarios/program/work_ops.h"

namespace foretrace::serving {

inline constexpr std::int64_t kHalf = 2, kFloat = 4;  // bytes of an element

/// Whose scheduler and kernels: hw/serving's, or what the documents of the others say.
enum class EngineKind : std::uint8_t { Foretrace, Vllm, Sglang, TensorRtLlm };

/// The word that a scenario has for it.
const char* engine_name(EngineKind kind);

/// Tokens that an iteration guesses ahead for each request that decodes, to be checked in the next
/// one: by a layer more of the network (multi-token prediction, EAGLE), or looked up in the prompt.
struct Speculation {
  std::int64_t tokens = 1;          ///< guessed for each request
  std::int64_t acceptance_ppm = 0;  ///< of guesses whose forerunners were right
  bool by_layer = true;
};

struct Engine {
  EngineKind kind = EngineKind::Foretrace;
  std::int64_t max_batched_tokens = 2048;  ///< of an iteration
  std::int64_t max_requests = 64;          ///< that run at the same time
  bool chunked_prefill = true;
  std::int64_t block = 16;
  bool cuda_graphs = true;
  std::int64_t memory_ppm = 900'000;  ///< of the GPU's, for weights, workspace and cache
  std::optional<std::int64_t> cache_tokens;
  std::int64_t max_length = 8192;  ///< of a request, prompt and output
  std::string release = {};        ///< as its makers number it; empty: not said
  std::optional<Speculation> speculative;

  /// Tokens of a request that decodes in an iteration beyond its one.
  std::int64_t guesses() const { return speculative ? speculative->tokens : 0; }
};

/// Lengths: a normal law, at least 1.
struct Law {
  std::int64_t mean = 1;
  std::int64_t spread_ppm = 0;  ///< standard deviation, of the mean
};

struct Arrival {
  std::optional<std::int64_t> at_ns;  ///< empty: when an earlier one has finished (closed loop)
  std::int64_t prompt = 1;
  std::int64_t output = 1;
};

enum class Arrivals : std::uint8_t { Poisson, Gamma, Closed, Trace };

struct Traffic {
  Arrivals arrivals = Arrivals::Closed;
  std::int64_t mean_gap_ns = 0;
  std::int64_t shape_halves = 2;  ///< of gamma
  std::int64_t concurrency = 1;   ///< of closed
  Law prompt, output;
  std::int64_t requests = 1;
  std::uint64_t seed = 1;
  std::vector<Arrival> trace;
};

/// Of weights and of what they multiply. Float4 is NVIDIA's, a scale for each 16 numbers. Int4 are
/// weights alone (GPTQ, AWQ), a scale and a zero for each 128: products are bfloat16's.
enum class Precision : std::uint8_t { BFloat16, Float8, Float4, Int4 };

/// How the GPUs of an engine share the model. Each group of `tensor` has requests of its own, and
/// attention for them; experts lie on `expert` parts of all groups.
struct Layout {
  std::int64_t tensor = 1;  ///< GPUs that share each layer
  std::int64_t data = 1;    ///< groups of those
  std::int64_t expert = 1;
  std::int64_t pipeline = 1;  ///< stages, each with a part of the layers on GPUs of its own

  std::int64_t stage_gpus() const { return tensor * data; }
  std::int64_t gpus() const { return stage_gpus() * pipeline; }
  /// GPUs that share an expert.
  std::int64_t expert_tensor() const { return stage_gpus() / expert; }
};

/// Engines that compute prompts, and engines that go on from the first token.
struct Apart {
  Layout prefill;
  std::int64_t prefill_engines = 1;
};

enum class Router : std::uint8_t { RoundRobin, LeastLoaded };

struct Serving {
  std::string name, file;
  training::Architecture model;
  Precision precision = Precision::BFloat16;  ///< of the layers' products
  bool float8_cache = false;
  Layout layout;
  std::int64_t replicas = 1;   ///< engines, each with its own GPUs
  std::optional<Apart> apart;  ///< layout and replicas are then of those that go on
  Router router = Router::RoundRobin;
  bool has_nvlink = true;  ///< between GPUs that share layers: the machine's, not the file's
  bool groups_have_nvlink = true;  ///< between all GPUs of a stage
  bool stages_have_nvlink = true;  ///< between all GPUs of an engine
  std::int64_t prefix_ppm = 0;     ///< of a prompt's tokens that the cache has already
  Engine engine;
  Traffic traffic;
  /// A host that is known, not the file's: it takes so many times what the machine says, and is so
  /// many times as uncertain.
  struct Host {
    double factor = 1, band = 1;
  };
  std::optional<Host> host;

  /// Of the last stage, which has as many layers as any, and the head: whatever is told of one GPU
  /// is told of its. 0 without a pipeline.
  std::int64_t first_layer() const {
    return model.layers - (model.layers + layout.pipeline - 1) / layout.pipeline;
  }
  /// Of all engines.
  std::int64_t gpus() const {
    const std::int64_t prompts = apart ? apart->prefill.gpus() * apart->prefill_engines : 0;
    return layout.gpus() * replicas + prompts;
  }
};

/// Whether a layer more of the network guesses tokens.
bool guesses_by_layer(const Serving& serving);

DataType product_type(Precision precision);
Scales product_scales(Precision precision);

/// Why GPUs cannot share the model so, heads, widths and experts whole on each; empty: they can.
std::string why_not_split(const training::Architecture& model, const Layout& layout);

/// The engines that compute prompts, as a description of their own (`apart` must be there).
Serving prompts_of(const Serving& serving);

/// Bytes of a token in an indexer's layer: a number of 8 bits for each element, and a scale.
std::int64_t index_bytes(const training::Architecture& model);
/// Bytes that a token's keys and values take on one GPU.
std::int64_t cache_bytes(const Serving& serving);
/// Bytes of a request on one GPU, whatever its length: states of linear attention.
std::int64_t state_bytes(const Serving& serving);
/// Bytes of a GPU's share of the weights.
std::int64_t weight_bytes(const Serving& serving);
/// Tokens that fit beside weights, workspace and states into a GPU of so many bytes, whole blocks;
/// at most those that the file says. Of other engines these are what the log says: the workspace,
/// a guess, does not count then. At most 0: the model leaves no room.
std::int64_t cache_tokens(const Serving& serving, std::int64_t gpu_bytes, std::int64_t workspace);

}  // namespace foretrace::serving
