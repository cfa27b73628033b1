// Small training steps, and what their expansion has: for the tests of this folder.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "scenarios/architecture/config.h"
#include "scenarios/architecture/counts.h"
#include "scenarios/program/program_walk.h"
#include "scenarios/read/scenario.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/training_step/expand.h"
#include "scenarios/write/program_text.h"

namespace foretrace::training {

inline Architecture llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                          std::int64_t kv_heads, std::int64_t ffn, std::int64_t vocab) {
  Architecture model;
  model.name = "llama";
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.head_dim = hidden / heads;
  model.ffn = ffn;
  model.vocab = vocab;
  return model;
}

inline TrainingStep small_step() {
  TrainingStep step;
  step.model = llama(4, 256, 8, 2, 512, 1000);
  step.sequence = 128;
  step.steps = 1;
  return step;
}

inline std::string scenario(std::string_view step, int processes = 1) {
  return fmt::format("schema_version: 1\nname: a\nprocesses: {}\ntraining_step: {}\n", processes,
                     step);
}

inline constexpr std::string_view kModel =
    "model: {layers: 4, hidden: 256, heads: 8, kv_heads: 2, ffn: 512, vocab: 1000}";

inline std::string problems(const std::string& text) {
  const auto read = read_scenario(text, "a.yaml");
  return read ? std::string{} : render(read.error(), text);
}

inline Program expanded(const TrainingStep& step, Ranks ranks = Ranks::All) {
  Program head;
  head.name = "a";
  return expand(step, ranks, head).program;
}

/// What `foretrace print` writes of it.
inline std::string text_of(const TrainingStep& step, Ranks ranks = Ranks::All) {
  return scenario_text(expanded(step, ranks));
}

/// As its text reads, which is the same program.
inline Program program_of(const TrainingStep& step) {
  const Program made = expanded(step);
  const std::string text = scenario_text(made);
  auto read = read_scenario(text, "a.yaml");
  if (!read) throw UsageError{render(read.error(), text)};
  if (read->program.hash != made.hash) throw UsageError{"its text reads as another program"};
  return std::move(read->program);
}

/// How often the text of a step has a word, processes that are alike once.
inline std::size_t times(const TrainingStep& step, std::string_view word) {
  const std::string text = text_of(step, Ranks::OneOfEach);
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++found;
  return found;
}

/// Operations of a kind in all threads, those in loops once.
inline std::size_t count(const Program& program, std::string_view kind) {
  std::size_t found = 0;
  for (const HostThread& thread : program.threads) {
    for_each_op(thread.ops, [&](const Op& op) { found += kind_name(op.kind) == kind ? 1 : 0; });
  }
  return found;
}

/// Executions of a kind of operation in one process of each stage; of all kinds where it is empty.
inline std::uint64_t executed(const TrainingStep& step, std::string_view kind = {}) {
  std::uint64_t all = 0;
  for_each_op(expanded(step, Ranks::OneOfEach),
              [&](const HostThread&, const Op& op, Around around) {
                const bool counts =
                    block_of(op.kind) == nullptr && (kind.empty() || kind_name(op.kind) == kind);
                if (counts) all += executions(around);
              });
  return all;
}

}  // namespace foretrace::training
