#include "scenarios/training_step/expand.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "scenarios/architecture/counts.h"
#include "scenarios/training_step/places.h"
#include "scenarios/training_step/schedule.h"

namespace foretrace::training {
namespace {

/// Processes that run the same text.
struct RankClass {
  std::vector<std::int64_t> processes;
  Place place{};
};

struct Thread {
  std::string text;
  PartBytes memory{};
  MemoryCurve curve;
  std::int64_t largest_operand = 2, largest_input = 2, largest_output = 2;
  std::map<std::string, std::int64_t> own_buffers;
};

/// Whether replicas and shards name different groups, and so cannot share a text.
bool groups_differ(const TrainingStep& step, std::int64_t stage) {
  const bool splits_data = step.tensor > 1 || (step.expert > 1 && step.expert < step.replicas());
  return (step.replicas() > 1 && splits_data) || step.context > 1 || shares_embedding(step, stage);
}

std::vector<RankClass> rank_classes(const TrainingStep& step, Ranks ranks) {
  std::vector<RankClass> classes;
  if (ranks == Ranks::OneOfEach) {
    for (const std::int64_t process : one_of_each(step)) {
      classes.push_back({{process}, place_of(step, process)});
    }
    return classes;
  }
  for (std::int64_t process = 0; process < step.processes(); ++process) {
    const Place place = place_of(step, process);
    const bool is_new =
        groups_differ(step, place.stage) || (place.shard == 0 && place.replica == 0);
    if (is_new) classes.push_back({{}, place});
    classes.back().processes.push_back(process);
  }
  return classes;
}

std::string tensor_group(const TrainingStep& step, const Place& place) {
  return fmt::format("tensor_parallel_{}", place.stage * step.replicas() + place.replica);
}
std::string data_group(const TrainingStep& step, const Place& place) {
  return fmt::format("data_parallel_{}", place.stage * step.tensor + place.shard);
}
std::string context_group(const TrainingStep& step, const Place& place) {
  return fmt::format(
      "context_parallel_{}",
      (place.stage * step.data + place.replica / step.context) * step.tensor + place.shard);
}
std::string expert_group(const TrainingStep& step, const Place& place) {
  return fmt::format(
      "expert_parallel_{}",
      (place.stage * step.expert_data() + place.replica / step.expert) * step.tensor + place.shard);
}
/// Without expert parallelism experts are as any other parameters.
std::string expert_data_group(const TrainingStep& step, const Place& place) {
  if (step.expert == 1) return data_group(step, place);
  return fmt::format(
      "expert_data_{}",
      (place.stage * step.expert + place.replica % step.expert) * step.tensor + place.shard);
}
std::string embedding_group(const TrainingStep& step, const Place& place) {
  return fmt::format("embedding_{}", place.replica * step.tensor + place.shard);
}

/// The groups that the classes' threads name, each once.
std::string process_groups(const TrainingStep& step, const std::vector<RankClass>& classes) {
  std::set<std::string> known;
  std::string text;
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& ranks) {
    if (!known.insert(name).second) return;
    text += fmt::format("  {}: {{ranks: [{}], init: eager}}\n", name, fmt::join(ranks, ", "));
  };
  for (const RankClass& one : classes) {
    const Place& place = one.place;
    if (step.tensor > 1) add(tensor_group(step, place), tensor_ranks(step, place));
    if (step.replicas() > 1) add(data_group(step, place), data_ranks(step, place));
    if (step.context > 1) add(context_group(step, place), context_ranks(step, place));
    if (step.expert > 1) add(expert_group(step, place), expert_ranks(step, place));
    if (step.expert > 1 && step.expert_data() > 1) {
      add(expert_data_group(step, place), expert_data_ranks(step, place));
    }
    if (shares_embedding(step, place.stage)) {
      add(embedding_group(step, place), embedding_ranks(step, place));
    }
  }
  if (step.pipeline > 1) text += "  pipeline: {ranks: all, init: eager}\n";
  return text.empty() ? "" : "process_groups:\n" + text;
}

/// Both stages that hold a tied embedding add their gradients, as Megatron does at the end.
void add_embedding_gradients(const TrainingStep& step, const Place& place, Writer& out) {
  if (!shares_embedding(step, place.stage)) return;
  const std::int64_t bytes =
      step.model.vocab / step.tensor * step.model.hidden * (step.float32_parameters ? 4 : 2);
  out.host(FrameworkWork::Collective);
  out.needs(bytes, 0);
  out.line(fmt::format(
      "all_reduce: {{id: embedding, group: {}, buffer: part, size: {}B, type: {}}}",
      embedding_group(step, place), bytes, step.float32_parameters ? "float32" : "bfloat16"));
}

/// Stages that cannot be equal: the first and last one have a layer less, where that fills them, or
/// the first ones a layer more.
StageLayers layers_of(const TrainingStep& step, const Place& place) {
  const std::int64_t layers = step.model.layers, stage = place.stage;
  const std::int64_t each = (layers + (step.ends_are_layers() ? 2 : 0)) / step.pipeline;
  const std::int64_t more = layers % step.pipeline;
  const auto begin = [&](std::int64_t at) {
    if (step.ends_are_layers()) return std::clamp<std::int64_t>(at * each - 1, 0, layers);
    return at * each + std::min(at, more);
  };
  return {begin(stage),
          begin(stage + 1),
          stage == 0,
          stage + 1 == step.pipeline,
          context_neighbours(step, place),
          stage};
}

/// The workspaces of cuBLAS on GPUs with TMA, one for the thread that runs the backward pass; and
/// the tokens and labels of all micro-batches.
void allocate_rest(const TrainingStep& step, Memory& memory) {
  constexpr std::int64_t kWorkspace = 32LL << 20;
  memory.allocate(Part::Buffers, 2 * kWorkspace);
  memory.allocate(Part::Buffers, 2 * step.tokens() * step.passes * 8);
}

/// The calls of a process's steps, and what they allocate.
void write_calls(const TrainingStep& step, const Place& place, Writer& out, Memory& memory) {
  out.set_group("tensor_parallel", tensor_group(step, place));
  out.set_group("data_parallel", data_group(step, place));
  out.set_group("context_parallel", context_group(step, place));
  out.set_group("expert_parallel", expert_group(step, place));
  out.set_group("expert_data", expert_data_group(step, place));
  const auto layout = make_layout(step, out, memory);
  Decoder decoder{step, layers_of(step, place), out, memory, *layout};
  layout->allocate(decoder);
  allocate_rest(step, memory);
  out.host(FrameworkWork::Step);
  layout->begin_step();
  write_passes(step, {place.stage, step.pipeline, step.replicas() * step.tensor}, decoder, *layout,
               out);
  add_embedding_gradients(step, place, out);
  decoder.update();
  layout->after_update();
  out.line("device_synchronize: {}");
}

Thread write_thread(const TrainingStep& step, const Place& place) {
  constexpr int kIndent = 14;
  Writer out{kIndent, step.tensor};
  Memory memory{&out.now()};
  write_calls(step, place, out, memory);
  return {out.text(),
          memory.peak(),
          {{}, 0, out.sections(), memory.changes()},
          out.largest_operand(),
          out.largest_input(),
          out.largest_output(),
          out.own_buffers()};
}

std::int64_t lines_of(std::string_view text) { return std::ranges::count(text, '\n'); }

std::string buffers(const std::vector<Thread>& threads) {
  std::int64_t operand = 2, input = 2, output = 2, total = 0;
  std::map<std::string, std::int64_t> own;
  for (const Thread& thread : threads) {
    operand = std::max(operand, thread.largest_operand);
    input = std::max(input, thread.largest_input);
    output = std::max(output, thread.largest_output);
    for (const auto& [name, bytes] : thread.own_buffers) own[name] = std::max(own[name], bytes);
    total = std::max(total, sum(thread.memory));
  }
  // What operations name is part of what a process holds at its peak.
  std::int64_t named = 3 * operand + input + output;
  std::string of_own;
  for (const auto& [name, bytes] : own) {
    named += bytes;
    of_own += fmt::format("  {}: {{memory: device, size: {}B}}\n", name, bytes);
  }
  return fmt::format(
      "buffers:                                      # what operations name, and the rest of a "
      "process's peak\n"
      "  operand_a: {{memory: device, size: {0}B, contents: normal}}\n"
      "  operand_b: {{memory: device, size: {0}B, contents: normal}}\n"
      "  result:    {{memory: device, size: {0}B}}\n"
      "  part:      {{memory: device, size: {1}B}}\n"
      "  whole:     {{memory: device, size: {2}B}}\n"
      "{4}"
      "  other:     {{memory: device, size: {3}B}}\n",
      operand, input, output, std::max<std::int64_t>(4, total - named), of_own);
}

}  // namespace

std::int64_t steps_of(const TrainingStep& step) {
  if (step.steps > 0) return step.steps;
  constexpr double kSettled = 0.35;  // s, some times what the clock needs under load
  constexpr double kUsual = 400e12;  // flop/s of a GPU
  const double seconds = model_flops(step) / static_cast<double>(step.processes()) / kUsual;
  if (seconds > 10 * kSettled) return 1;
  return static_cast<std::int64_t>(std::clamp(std::ceil(kSettled / seconds), 2.0, 8.0));
}

PartBytes peak_memory(const TrainingStep& step) {
  PartBytes most{};
  for (std::int64_t stage = 0; stage < step.pipeline; ++stage) {  // all of a stage allocate alike
    Writer out = Writer::silent(step.tensor);
    Memory memory;
    write_calls(step, {.stage = stage}, out, memory);
    if (sum(memory.peak()) > sum(most)) most = memory.peak();
  }
  return most;
}

Expansion expand(const TrainingStep& step, Ranks ranks) {
  Expansion expansion;
  const std::vector<RankClass> classes = rank_classes(step, ranks);
  std::vector<Thread> threads;
  threads.reserve(classes.size());
  std::string text;
  std::int64_t lines = 0;  // of `text`
  for (const RankClass& one : classes) {
    threads.push_back(write_thread(step, one.place));
    const std::size_t written = text.size();
    const bool all = classes.size() == 1 && ranks == Ranks::All;
    text += fmt::format("  {}:\n",
                        all ? std::string{"main"} : fmt::format("rank_{}", one.processes.front()));
    if (!all) text += fmt::format("    processes: [{}]\n", fmt::join(one.processes, ", "));
    text += fmt::format(
        "    ops:\n"
        "      - host_barrier: {{}}\n"
        "      - repeat:\n"
        "          times: {}\n"
        "          ops:\n"
        "          - region:\n"
        "              name: step\n"
        "              ops:\n{}",
        steps_of(step), threads.back().text);
    MemoryCurve& curve = threads.back().curve;
    curve.processes = one.processes;
    lines += lines_of(std::string_view{text}.substr(written));
    curve.first_line = lines - lines_of(threads.back().text);
    if (sum(threads.back().memory) > sum(expansion.memory))
      expansion.memory = threads.back().memory;
  }
  expansion.text = fmt::format("nodes: {}\nprocesses: {}\n{}", step.nodes, step.processes(),
                               process_groups(step, classes));
  if (step.sharding == Sharding::Fsdp) {
    expansion.text += "streams: {gathering: {flags: non_blocking}}\n";
  }
  expansion.text += buffers(threads) + "threads:\n";
  const std::int64_t before = lines_of(expansion.text);
  for (Thread& thread : threads) {
    thread.curve.first_line += before;
    expansion.curves.push_back(std::move(thread.curve));
  }
  expansion.text += text;
  expansion.parameters = parameter_count(step.model);
  expansion.flops = model_flops(step);
  expansion.tokens = step.tokens() * step.passes * step.replicas();
  return expansion;
}

}  // namespace foretrace::training
