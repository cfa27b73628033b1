// What users wait for, each with the work behind its seconds: plans, wide collectives, the order of
// many ranks, a trace. tests/bench/figures.py compares with the last committed figures.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <string>

#include "models/machine/machine.h"
#include "reports/capture/kineto.h"
#include "scenarios/check/happens_before.h"
#include "scenarios/read/scenario.h"
#include "sim/applications/plan/search.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"

namespace foretrace {
namespace {

double cpu_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Of this process and its children.
double all_cpu_seconds() { return cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN); }

/// CPU seconds of `run` in a child: SimGrid allows one simulation with flows for each process.
template <class Run>
std::vector<double> in_child(const Run& run) {
  return run_in_children({[&] {
    const double begin = cpu_seconds(RUSAGE_SELF);
    std::vector<double> counts = run();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    counts.insert(counts.begin(),
                  {cpu_seconds(RUSAGE_SELF) - begin, static_cast<double>(usage.ru_maxrss) / 1024});
    return counts;
  }})[0];
}

plan::Question question_of(const std::string& model, std::int64_t sequences) {
  plan::Question question;
  question.model = question.model_name = model;
  question.machine = load_machine("h100-nvswitch-8");
  question.machine_name = "h100-nvswitch-8";
  question.global_batch = sequences;
  question.architecture =
      read_training_step("schema_version: 1\nname: a\ntraining_step: {model: " + model +
                             ", batch: {sequence: 8192}}\n",
                         "a.yaml")
          ->model;
  return question;
}

void plan_of(benchmark::State& state, const std::string& model, std::int64_t sequences) {
  const plan::Question question = question_of(model, sequences);
  plan::Answer answer;
  for (auto _ : state) {
    const double begin = all_cpu_seconds();
    answer = plan::search(question, state.range(0), [](const plan::Standing&) { return true; });
    state.SetIterationTime(all_cpu_seconds() - begin);
  }
  const auto count = [&](const char* name, std::size_t value) {
    state.counters[name] = static_cast<double>(value);
  };
  count("valid", answer.valid);
  count("fit", answer.fitting);
  count("simulated", answer.simulated);
  count("simulations", answer.work.simulations);
  count("spans", answer.work.spans);
}
BENCHMARK_CAPTURE(plan_of, llama3_70b, "llama3-70b", 1024)
    ->Arg(64)
    ->Arg(512)
    ->Arg(4096)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_of, llama3_405b, "llama3-405b", 2048)
    ->Arg(16384)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

Program all_reduce_of(std::int64_t ranks) {
  const std::string text = fmt::format(R"(schema_version: 1
name: ring
nodes: {}
processes: {}
streams: {{s: {{flags: non_blocking}}}}
communicators: {{world: {{members: all_devices, init: rank}}}}
buffers: {{x: {{memory: device, size: 64MB}}}}
threads:
  main:
    - nccl_all_reduce: {{comm: world, stream: s, buffer: x, type: float32}}
    - nccl_all_reduce: {{comm: world, stream: s, buffer: x, type: float32}}
    - stream_synchronize: {{stream: s}}
)",
                                       ranks / 8, ranks);
  return read_scenario(text, "ring.yaml")->program;
}

void all_reduce_over_ranks(benchmark::State& state) {
  const Program program = all_reduce_of(state.range(0));
  const Machine machine = load_machine("h100-nvswitch-8");
  std::vector<double> counts;
  for (auto _ : state) {
    counts = in_child(
        [&] { return std::vector{static_cast<double>(simulate(program, machine).spans.size())}; });
    state.SetIterationTime(counts[0]);
  }
  state.counters["MiB"] = counts[1];
  state.counters["spans"] = counts[2];
}
BENCHMARK(all_reduce_over_ranks)
    ->RangeMultiplier(2)
    ->Range(1024, 16384)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

void order_of_ranks(benchmark::State& state) {
  const Program program = all_reduce_of(state.range(0));
  std::vector<double> counts;
  for (auto _ : state) {
    counts = in_child([&] {
      const HappensBefore order =
          happens_before(program, {.mode = OrderMode::Likely, .most_operations = 1'000'000});
      return std::vector{static_cast<double>(order.clock_entries), order.is_finished ? 1.0 : 0.0};
    });
    state.SetIterationTime(counts[0]);
  }
  state.counters["MiB"] = counts[1];
  state.counters["clock_entries"] = counts[2];
  state.counters["is_finished"] = counts[3];
}
BENCHMARK(order_of_ranks)
    ->RangeMultiplier(4)
    ->Range(1024, 16384)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

void trace_of(benchmark::State& state) {
  std::string text = R"({"traceEvents": [)";
  for (std::int64_t i = 0; text.size() < static_cast<std::size_t>(state.range(0)); ++i) {
    text += fmt::format(
        "{}\n  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add_\", \"pid\": 1, "
        "\"tid\": 1,\n    \"ts\": {}.{:03}, \"dur\": 3.500,\n    \"args\": {{\n      \"External "
        "id\": {}, \"Record function id\": 0, \"Ev Idx\": {}\n    }}\n  }}",
        i == 0 ? "" : ",", 1'700'000'000'000 + i * 5, i % 1000, i, i);
  }
  text += "]}";
  for (auto _ : state) {
    capture::Names names;
    benchmark::DoNotOptimize(capture::parse_kineto(text, "trace.json", names));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(trace_of)->Arg(32 << 20)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretrace

BENCHMARK_MAIN();
