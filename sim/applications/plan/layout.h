// The layouts that a plan chooses from: how a model's training step is spread over GPUs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "scenarios/training_step/description.h"

namespace foretrace::plan {

/// What a planner asks.
struct Question {
  std::string model;       ///< as a scenario says it: "llama3-70b", "{config: /a/config.json}"
  std::string model_name;  ///< for people and file names
  training::Architecture architecture;
  std::string machine_name;  ///< as given
  std::vector<std::string> what_ifs;
  Machine machine;
  std::vector<std::int64_t> gpus;
  std::int64_t sequence = 8192, global_batch = 1024;
  bool float32_parameters = false;
  bool float8 = false;  ///< products of linear layers; without tensor parallelism
  std::map<std::string, std::string> kept;  ///< "tensor": "8", only layouts with this
  std::size_t top = 3;
  std::optional<double> cost_per_gpu_hour;
};

struct Layout {
  std::int64_t gpus = 1, tensor = 1, pipeline = 1, data = 1;
  std::int64_t context = 1;      ///< neighbours that split each sequence
  std::int64_t interleaved = 1;  ///< chunks of a pipeline stage
  std::int64_t expert = 1;       ///< neighbours that share a layer's experts
  std::int64_t micro_batch = 1, passes = 1;
  training::Sharding sharding = training::Sharding::None;
  bool reduce_every_pass = false;  ///< FSDP: gradients are scattered behind every micro-batch
  training::Recompute recompute = training::Recompute::None;
};

/// "tensor 8, pipeline 4, data 16; 64 x 1; zero1; full recomputation"
std::string describe(const Layout& layout);
/// "t8_p4_d16_m1_zero1_full": of a scenario.
std::string short_name(const Layout& layout);

/// What --keep may name, with the values of `layout`: {"tensor", "8"}, {"sharding", "zero1"}.
std::map<std::string, std::string> choices_of(const Layout& layout);

/// All that divide evenly; of a pipeline's stages the first and last may have a layer less, for the
/// embedding and the loss. Tensor parallel groups stay within a node and split sequences and the
/// loss, too; so do groups that share experts; sequences are split where parts of 8192 tokens are
/// left; stages are interleaved by two or four where there are fewer than eight micro-batches for
/// each stage; micro-batches are of 1, 2 or 4 sequences; replicas
/// share the optimizer (zero1), or parameters as well (fsdp). What else must hold is the reader's
/// to say.
std::vector<Layout> layouts(const Question& question, std::int64_t gpus);

/// The scenario; where `passes` is given with so many micro-batches instead of its own, and as many
/// steps as with all of them.
std::string scenario_text(const Question& question, const Layout& layout,
                          std::optional<std::int64_t> passes = {});

/// The step that training_step's reader makes of that text, without reading it.
training::TrainingStep step_of(const Question& question, const Layout& layout,
                               std::optional<std::int64_t> passes = {});

}  // namespace foretrace::plan
