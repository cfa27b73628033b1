// The best layouts of a number of GPUs, and what limits each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/applications/explain/explain.h"
#include "sim/applications/plan/predict.h"

namespace foretrace::plan {

/// Something made better, and what share of the step's time per token that saves.
struct Remedy {
  std::string what;    ///< "nvlink=2x", as --with says it; "host=2x gemm=2x"; "global batch 2048"
  std::string limits;  ///< what it relieves: "NVLink"
  std::string words;   ///< what to do: "twice the bandwidth of NVLink"
  double gain = 0;     ///< 0.2: a fifth less time for each token
};

struct Row {
  Layout layout;
  Fit fit;
  double bound = 0;    ///< seconds: no step of it is shorter (bound.h)
  Prediction settled;  ///< with settled_passes(): what remedies are compared with
  Prediction prediction;
  std::vector<Remedy> remedies;       ///< simulated, the best first
  std::vector<explain::Gain> causes;  ///< of explain, what costs most first
  double tokens_per_gpu_second = 0;
  double mfu = 0;
  double gpu_hours = 0;        ///< for 10^12 tokens
  std::optional<double> cost;  ///< the same
};

struct Answer {
  std::int64_t gpus = 0;
  std::string machine;                ///< its name, with what was changed
  Machine model;                      ///< that machine
  std::vector<std::string> what_ifs;  ///< of the machine
  std::size_t valid = 0;              ///< layouts that the reader accepts
  std::size_t fitting = 0;            ///< of them, into the GPUs' memory
  std::size_t simulated = 0;          ///< of these; the others' lower bound is above the best ones
  std::vector<std::string> refused;   ///< of these, described: not predicted, so not compared
  double least_bytes = 0;             ///< of the valid layouts, the smallest peak of a GPU
  std::vector<Row> best;              ///< the fastest first
};

/// After each step of the search: what is done of how much.
using Progress = std::function<void(std::int64_t gpus, std::size_t done, std::size_t all)>;

/// Simulates in forked children, as many at once as there are cores. Call before any engine exists
/// in this process. Throws UsageError when no layout divides evenly.
Answer search(const Question& question, std::int64_t gpus, const Progress& progress);

}  // namespace foretrace::plan
