#include "sim/cli/simulate_answer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "scenarios/architecture/counts.h"
#include "scenarios/base/text/print.h"
#include "sim/applications/training/captured_usage.h"
#include "sim/cli/predicted_regions.h"

namespace foretrace {
namespace {

void print_text_answer(const Answered& of, const Timeline& timeline, const SimulatedStep& step,
                       const Machine& machine) {
  std::string answer = regions_text(predicted_regions(timeline));
  if (answer.empty() && !step.capture) answer = without_regions_text(timeline);
  if (!answer.empty()) {
    print_out("{}\non {}{}\n", answer, machine.name,
              of.machine_is_named ? "" : ", the default: --machine names another");
    if (!machine.host.empty()) print_out("host: {}\n", machine.host);
  }
  if (step.capture) {
    print_out("\n{}{}",
              sim::describe(sim::captured_usage(step.program, timeline), step.capture->expansion,
                            machine),
              step.host ? describe(*step.host, machine) : describe_typical_host(machine));
  }
  if (!step.training) return;
  const training::TrainingStep& read = step.training->step;
  if (step.left > 0) {
    print_out("\nabove {} of {} micro-batches; below the others, each as long as those alike\n",
              read.passes - step.left, read.passes);
  }
  print_out("\n{}", sim::describe(read, step.training->expansion, machine, step.usage));
}

nlohmann::ordered_json step_json(const SimulatedStep& step, const Machine& machine) {
  const training::Expansion& expansion = step.training->expansion;
  nlohmann::ordered_json json;
  if (step.usage) {
    const sim::StepShares mean = sim::mean_of(step.usage->of_process);
    const double seconds = step.usage->seconds;
    json = {{"seconds", seconds},
            {"tokens_per_second", static_cast<double>(expansion.tokens) / seconds},
            {"model_flops_per_gpu_second",
             expansion.flops / static_cast<double>(step.training->step.processes()) / seconds},
            {"computing", mean.computing},
            {"communication", mean.communication},
            {"waiting", mean.waiting},
            {"idle", mean.idle},
            {"limited_by", sim::limit_of(mean)},
            {"micro_batches_left_out", step.left}};
  }
  const training::Architecture& model = step.training->step.model;
  json["model"] = {{"name", model.name},
                   {"understood", training::understood(model)},
                   {"active_parameters", training::active_parameters(model)}};
  json["parameters"] = expansion.parameters;
  const sim::MemoryVerdict memory = sim::memory_verdict(expansion.memory, machine);
  json["memory"] = {{"bytes", memory.bytes}, {"gpu_bytes", memory.capacity}};
  for (std::size_t i = 0; i < training::kParts; ++i) {
    const std::string part{training::part_name(static_cast<training::Part>(i))};
    json["memory"]["parts"][part] = expansion.memory[i];
  }
  return json;
}

nlohmann::ordered_json capture_json(const SimulatedStep& step, const Timeline& timeline) {
  const sim::CapturedUsage usage = sim::captured_usage(step.program, timeline);
  const captured::Memory& memory = step.capture->expansion.memory;
  const nlohmann::ordered_json host =
      step.host ? nlohmann::ordered_json{{"file", step.host->file},
                                         {"loop_seconds", step.host->loop_seconds},
                                         {"factor", step.host->factor}}
                : nlohmann::ordered_json(nullptr);
  return {{"seconds", usage.step_ns * 1e-9},
          {"host", host},
          {"busy_seconds", usage.busy_ns * 1e-9},
          {"products_seconds", usage.products_ns * 1e-9},
          {"communication_seconds", usage.communication_ns * 1e-9},
          {"other_seconds", usage.other_ns * 1e-9},
          {"captured_seconds",
           {{"measured", usage.captured_ns[0] * 1e-9},
            {"same_kernel", usage.captured_ns[1] * 1e-9},
            {"family", usage.captured_ns[2] * 1e-9},
            {"plain", usage.captured_ns[3] * 1e-9}}},
          {"memory",
           {{"allocated_peak", memory.allocated_peak},
            {"reserved_peak", memory.reserved_peak},
            {"first_peak", memory.first_peak}}},
          {"assumptions", step.capture->expansion.notes}};
}

void print_json_answer(const Answered& of, const Timeline& timeline, const SimulatedStep& step,
                       const Machine& machine) {
  nlohmann::ordered_json json{{"schema_version", 1},
                              {"kind", "simulation"},
                              {"scenario", timeline.origin.scenario},
                              {"file", of.file},
                              {"machine", machine.name},
                              {"host", machine.host.empty() ? nlohmann::ordered_json(nullptr)
                                                            : nlohmann::ordered_json(machine.host)},
                              {"completed", timeline.outcome.kind == Outcome::Kind::Completed},
                              {"explanation", timeline.outcome.explanation},
                              {"regions", regions_json(predicted_regions(timeline))}};
  if (step.training) json["training_step"] = step_json(step, machine);
  if (step.capture) json["captured_step"] = capture_json(step, timeline);
  // Names may hold any bytes.
  print_out("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace

void print_answer(const Answered& of, const Timeline& timeline, const SimulatedStep& step,
                  const Machine& machine) {
  switch (of.format) {
    case OutputFormat::Text:
      return print_text_answer(of, timeline, step, machine);
    case OutputFormat::Csv:
      return print_text(regions_csv(predicted_regions(timeline)));
    case OutputFormat::Json:
      return print_json_answer(of, timeline, step, machine);
  }
}

}  // namespace foretrace
