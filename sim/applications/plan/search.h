// The best layouts of a number of GPUs, and what limits each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/applications/explain/explain.h"
#include "sim/applications/plan/ask.h"

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
  std::string refused_why;            ///< of the first of them
  std::vector<std::string> unread;    ///< those that the reader does not accept
  std::string unread_why;             ///< of the first of them
  bool stopped = false;               ///< before the end: what is known by then
  Work work;                          ///< of the whole search
  double least_bytes = 0;             ///< of the valid layouts, the smallest peak of a GPU
  std::vector<Row> best;              ///< the fastest first
};

/// How far a search has come.
struct Standing {
  std::int64_t gpus = 0;
  const char* doing = "";  ///< "looked into the memory"
  std::size_t done = 0, all = 0;
  const Row* best = nullptr;  ///< so far, where there is one
};
/// After each step of the search, from its begin on; and after each signal. False stops it: the
/// answer is what is known by then.
using Progress = std::function<bool(const Standing& standing)>;

/// Simulates in forked children, as many at once as there are cores. Call before any engine exists
/// in this process. Throws UsageError when no layout divides evenly.
Answer search(const Question& question, std::int64_t gpus, const Progress& progress);

}  // namespace foretrace::plan
