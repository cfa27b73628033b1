// How fast the simulator is: 8 devices with 2 streams each, small kernels and events, from 1e4 to
// 1e7 executed operations. SimGrid allows one simulation per process, so each iteration is a child.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <string>

#include "models/machine/machine.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/read/scenario.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"

namespace foretrace {
namespace {

/// 8 devices x 4 operations in each of `rounds` iterations.
Program kernels_and_events(std::int64_t operations) {
  const std::string text = R"(schema_version: 1
name: bench
parameters: {rounds: )" + std::to_string(operations / 32) +
                           R"(}
devices: 8
streams: {a: {each: device, flags: non_blocking}, b: {each: device, flags: non_blocking}}
events: {e: {each: device}}
threads:
  main:
    - repeat:
        times: $rounds
        ops:
          - for_each:
              index: d
              in: devices
              ops:
                - spin: {stream: a(d), duration: 2us}
                - event_record: {stream: a(d), event: e(d)}
                - stream_wait_event: {stream: b(d), event: e(d)}
                - spin: {stream: b(d), duration: 2us}
    - for_each: {index: d, in: devices, ops: [device_synchronize: {device: d}]}
)";
  return read_scenario(text, "bench.yaml")->program;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

void simulate_operations(benchmark::State& state) {
  const Program program = kernels_and_events(state.range(0));
  const Machine machine = load_machine("h200-nvswitch-8");
  double bytes = 0;
  for (auto _ : state) {
    const auto result = run_in_children({[&] {
      const double before = peak_bytes();
      const auto begin = std::chrono::steady_clock::now();
      const Timeline timeline = simulate(program, machine);
      const double seconds = seconds_since(begin);
      benchmark::DoNotOptimize(timeline.spans.data());
      return std::vector{seconds, peak_bytes() - before};
    }});
    state.SetIterationTime(result[0][0]);
    bytes = result[0][1];
  }
  const auto operations = static_cast<double>(state.range(0));
  state.counters["ops/s"] =
      benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bytes/op"] = bytes / operations;
}
BENCHMARK(simulate_operations)
    ->RangeMultiplier(10)
    ->Range(10'000, 10'000'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void write_timeline_spans(benchmark::State& state) {
  Timeline timeline;
  timeline.origin.program_hash = "bench";
  timeline.ops.resize(16);
  timeline.lanes.resize(16);
  const auto count = static_cast<std::uint64_t>(state.range(0));
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto begin = static_cast<std::int64_t>(i * 2113);
    timeline.spans.push_back({static_cast<std::uint32_t>(i % 16),
                              static_cast<std::uint32_t>(i % 16), i / 16, begin, begin + 2000, 1,
                              0});
  }
  for (auto _ : state) {
    std::ofstream out{"/dev/null"};
    write_timeline(timeline, out);
  }
  state.counters["spans/s"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(write_timeline_spans)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretrace

BENCHMARK_MAIN();
