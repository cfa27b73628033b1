#include "scenarios/training_step/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "scenarios/architecture/counts.h"
#include "scenarios/check/check.h"
#include "scenarios/training_step/places.h"
#include "scenarios/training_step/schedule.h"

namespace foretrace::training {
namespace {

/// Processes that run the same thread.
struct RankClass {
  std::vector<std::int64_t> processes;
  Place place{};
};

/// What a process needs, the largest of all.
struct Needs {
  PartBytes memory{};
  std::int64_t largest_operand = 2, largest_input = 2, largest_output = 2;
  BufferBytes own_buffers;

  void take(const Writer& out, const PartBytes& peak) {
    if (sum(peak) > sum(memory)) memory = peak;
    largest_operand = std::max(largest_operand, out.largest_operand());
    largest_input = std::max(largest_input, out.largest_input());
    largest_output = std::max(largest_output, out.largest_output());
    for (const auto& [name, bytes] : out.own_buffers()) {
      own_buffers[name] = std::max(own_buffers[name], bytes);
    }
  }
};

/// Whether replicas and shards name different groups, and so cannot share a thread.
bool groups_differ(const TrainingStep& step, std::int64_t stage) {
  const std::int64_t near = step.neighbours();
  const bool splits_data = step.tensor > 1 || (near > 1 && near < step.replicas());
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
/// Of experts, or of hybrid sharding.
std::string neighbour_group(const TrainingStep& step, const Place& place) {
  const std::int64_t near = step.neighbours();
  return fmt::format(
      "{}_{}", step.is_hybrid() ? "shard_parallel" : "expert_parallel",
      (place.stage * (step.replicas() / near) + place.replica / near) * step.tensor + place.shard);
}
/// Without expert parallelism experts are as any other parameters.
std::string same_part_group(const TrainingStep& step, const Place& place) {
  const std::int64_t near = step.neighbours();
  if (near == 1) return data_group(step, place);
  return fmt::format("{}_{}", step.is_hybrid() ? "copies" : "expert_data",
                     (place.stage * near + place.replica % near) * step.tensor + place.shard);
}
std::string embedding_group(const TrainingStep& step, const Place& place) {
  return fmt::format("embedding_{}", place.replica * step.tensor + place.shard);
}

/// The groups that the classes' threads name.
void add_groups(const TrainingStep& step, const std::vector<RankClass>& classes,
                StepProgram& program) {
  for (const RankClass& one : classes) {
    const Place& place = one.place;
    const auto add = [&](const std::string& name, auto ranks_of) {
      if (!program.has_group(name)) program.add_group(name, ranks_of(step, place));
    };
    if (step.tensor > 1) add(tensor_group(step, place), tensor_ranks);
    if (step.replicas() > 1) add(data_group(step, place), data_ranks);
    if (step.context > 1) add(context_group(step, place), context_ranks);
    if (step.neighbours() > 1) {
      add(neighbour_group(step, place), neighbour_ranks);
      if (step.neighbours() < step.replicas()) add(same_part_group(step, place), same_part_ranks);
    }
    if (shares_embedding(step, place.stage)) add(embedding_group(step, place), embedding_ranks);
  }
  if (step.pipeline == 1) return;
  std::vector<std::int64_t> all(static_cast<std::size_t>(step.processes()));
  std::iota(all.begin(), all.end(), 0);
  program.add_group("pipeline", all);
}

/// Both stages that hold a tied embedding add their gradients, as Megatron does at the end.
void add_embedding_gradients(const TrainingStep& step, const Place& place, Writer& out) {
  if (!shares_embedding(step, place.stage)) return;
  const std::int64_t bytes =
      step.model.vocab / step.tensor * step.model.hidden * (step.float32_parameters ? 4 : 2);
  out.host(FrameworkWork::Collective);
  out.needs(bytes, 0);
  const std::string group = embedding_group(step, place);
  out.collective({.id = "embedding",
                  .group = group,
                  .input = "part",
                  .output = "part",
                  .bytes = bytes,
                  .type = step.float32_parameters ? DataType::Float32 : DataType::BFloat16});
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
  out.set_group(step.is_hybrid() ? "shard_parallel" : "expert_parallel",
                neighbour_group(step, place));
  out.set_group(step.is_hybrid() ? "copies" : "expert_data", same_part_group(step, place));
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
  out.synchronize();
}

/// The thread of a class, with its steps around the calls; what it needs goes to `needs`.
MemoryCurve write_thread(const TrainingStep& step, const RankClass& of, std::string name,
                         StepProgram& program, Needs& needs) {
  Writer out{program, name, step.tensor};
  Memory memory{&out.now()};
  out.barrier();
  out.inside(Repeat{static_cast<std::uint64_t>(steps_of(step)), {}}, [&] {
    out.inside(Region{.name = "step", .ops = {}},
               [&] { write_calls(step, of.place, out, memory); });
  });
  needs.take(out, memory.peak());
  program.program().threads.push_back(
      {std::move(name), {of.processes.begin(), of.processes.end()}, out.take()});
  return {of.processes, out.sections(), memory.changes()};
}

/// What operations name, and the rest of a process's peak.
Program with_buffers(StepProgram& program, const Needs& needs) {
  const auto device = [](std::string name, std::int64_t bytes, Contents contents) {
    return Buffer{
        .name = std::move(name), .size = {static_cast<std::uint64_t>(bytes)}, .contents = contents};
  };
  std::int64_t named = 3 * needs.largest_operand + needs.largest_input + needs.largest_output;
  for (const auto& [name, bytes] : needs.own_buffers) named += bytes;
  const std::int64_t other = std::max<std::int64_t>(4, sum(needs.memory) - named);
  return program.finish({device("operand_a", needs.largest_operand, Contents::Normal),
                         device("operand_b", needs.largest_operand, Contents::Normal),
                         device("result", needs.largest_operand, Contents::Random),
                         device("part", needs.largest_input, Contents::Random),
                         device("whole", needs.largest_output, Contents::Random)},
                        needs.own_buffers, device("other", other, Contents::Random));
}

Program head_of(const TrainingStep& step, const Program& given) {
  Program head = foretrace::head_of(given);
  head.nodes = static_cast<std::uint32_t>(step.nodes);
  head.processes = static_cast<std::uint32_t>(step.processes());
  return head;
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

PartBytes peak_memory(const TrainingStep& step, std::int64_t stage) {
  Writer out = Writer::silent(step.tensor);
  Memory memory;
  write_calls(step, {.stage = stage}, out, memory);
  return memory.peak();
}

PartBytes peak_memory(const TrainingStep& step) {
  PartBytes most{};
  for (std::int64_t stage = 0; stage < step.pipeline; ++stage) {  // all of a stage allocate alike
    const PartBytes peak = peak_memory(step, stage);
    if (sum(peak) > sum(most)) most = peak;
  }
  return most;
}

Expansion expand(const TrainingStep& step, Ranks ranks, const Program& head, const SourceSpot& at) {
  Expansion expansion;
  const std::vector<RankClass> classes = rank_classes(step, ranks);
  StepProgram program{head_of(step, head), at, most_operations(ranks)};
  if (step.sharding == Sharding::Fsdp) program.add_stream("gathering");
  add_groups(step, classes, program);
  Needs needs;
  const bool is_one = classes.size() == 1 && ranks == Ranks::All;
  for (const RankClass& one : classes) {
    std::string name = is_one ? "main" : fmt::format("rank_{}", one.processes.front());
    expansion.curves.push_back(write_thread(step, one, std::move(name), program, needs));
    if (program.is_full()) break;
  }
  expansion.is_whole = !program.is_full();
  expansion.memory = needs.memory;
  expansion.program = with_buffers(program, needs);
  Problems problems{head.file};
  complete_program(expansion.program, problems);
  expansion.program.hash = hash_of(expansion.program);
  expansion.parameters = parameter_count(step.model);
  expansion.flops = model_flops(step);
  expansion.tokens = step.tokens() * step.passes * step.replicas();
  return expansion;
}

}  // namespace foretrace::training
