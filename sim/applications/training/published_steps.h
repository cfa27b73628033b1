// Training steps that others measured and published (reports/published/training.csv), the same
// steps predicted, and a yardstick that knows nothing but what other sources reached.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/training_step/description.h"
#include "sim/applications/training/measured_steps.h"

namespace foretrace::sim {

struct PublishedStep {
  std::string id;
  std::string source;     ///< whose table: the letters that `id` begins with
  std::string gpu;        ///< as the table names it
  std::string machine;    ///< file that stands for it; empty: none does
  std::string attention;  ///< a file whose attention's kernels ran there; empty: the machine's own
  std::map<std::string, std::string> environment;  ///< of its processes
  std::string refused;                             ///< why it is not predicted; else empty
  std::string trap;     ///< software that no kernel table here is of; else empty
  std::string read_as;  ///< whose calls stand for its framework's; empty: its own
  std::string assumed;  ///< of its machine, where the table says nothing; else empty
  char quality = 'C';   ///< A: nothing has to be assumed
  bool one_node = false;
  double seconds = 0;  ///< of a step
  double peak = 0;     ///< bytes of a GPU that the source measured; 0: it says nothing
  double flops = 0;    ///< of a step, six for each parameter and token, attention's half square
  std::int64_t gpus = 1;
  double sequences = 1;  ///< of a step
  std::string model;     ///< and where it ran: layouts of the same are compared
  std::string kind;      ///< GPU, bits of the arithmetic, full recomputation or not
  training::TrainingStep step;
};

/// Throws UsageError naming the line that is wrong.
std::vector<PublishedStep> read_published_steps(const std::filesystem::path& file);

/// Seconds of a step at the median rate that steps of the same kind reach in other sources; empty
/// where there are none.
std::optional<double> yardstick(const PublishedStep& step, const std::vector<PublishedStep>& all);

/// One for each step, empty for those that are refused. Call before any engine exists in this
/// process.
std::vector<std::optional<PredictedStep>> predict_published(
    const std::vector<PublishedStep>& steps);

}  // namespace foretrace::sim
