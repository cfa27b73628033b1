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

/// Whose scheduler and kernels: hw/serving's, or what the documents of the others say.
enum class EngineKind : std::uint8_t { Foretrace, Vllm, Sglang, TensorRtLlm };

/// The word that a scenario has for it.
const char* engine_name(EngineKind kind);

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

/// Of weights and of what they multiply. Float4 is NVIDIA's, a scale for each 16 numbers.
enum class Precision : std::uint8_t { BFloat16, Float8, Float4 };

struct Serving {
  std::string name, file;
  training::Architecture model;
  Precision precision = Precision::BFloat16;  ///< of the layers' products
  bool float8_cache = false;
  std::int64_t tensor = 1;      ///< GPUs that share each layer
  std::int64_t replicas = 1;    ///< engines, each with its own GPUs
  bool has_nvlink = true;       ///< between the GPUs of an engine: the machine's, not the file's
  std::int64_t prefix_ppm = 0;  ///< of a prompt's tokens that the cache has already
  Engine engine;
  Traffic traffic;
};

DataType product_type(Precision precision);
Scales product_scales(Precision precision);

/// Why so many GPUs cannot share each layer, heads and widths whole on each; empty: they can.
std::string why_not_split(const training::Architecture& model, std::int64_t tensor);

/// Bytes that a token's keys and values take on one GPU.
std::int64_t cache_bytes(const Serving& serving);
/// Bytes of a GPU's share of the weights.
std::int64_t weight_bytes(const Serving& serving);
/// Tokens that fit beside weights and workspace into a GPU of so many bytes, whole blocks; less
/// where the engine has a limit. At most 0: the model leaves no room.
std::int64_t cache_tokens(const Serving& serving, std::int64_t gpu_bytes);

}  // namespace foretrace::serving
