// Ring all-reduce of 64 MiB over 1024 ranks (128 nodes of 8 GPUs): at chunk fidelity with four
// groups of channels that go on independently, 1024 ranks x 2046 steps x 4 = 8.4 million messages,
// and with all channels folded as `simulate` folds them; then the whole program at both fidelities.
// Each iteration is a child of its own, so that its peak memory shows; times are processor time.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <ctime>
#include <string>

#include "models/nccl/time/cost.h"
#include "models/nccl/time/slices.h"
#include "scenarios/read/scenario.h"
#include "scenarios/base/text/errors.h"
#include "sim/chunk/network.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"

namespace foretrace {
namespace {

constexpr std::uint32_t kRanks = 1024;
constexpr std::uint32_t kNodes = 128;
constexpr Bytes kSize{64ULL << 20};

Machine cluster() {
  const auto machine = read_machine(R"(schema_version: 2
name: cluster
based_on: h200-nvswitch-8
node: {count: 128, gpus: 8, gpu: NVIDIA H200}
)",
                                    "cluster.yaml");
  FORETRACE_CHECK(machine.has_value(), "the bench's machine file is right");
  return *machine;
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

/// Processor time of this process, which has one thread: others on the machine do not count.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

class Once final : sim::Handler, sim::ChunkNetwork::Owner {
 public:
  explicit Once(const sim::ChunkProgram& program) : network_{engine_, kRanks}, program_{program} {
    for (std::uint32_t i = 0; i < kRanks; ++i) gpus_.push_back(i);
  }
  void run() {
    engine_.queue().at(TimePoint{}, *this, 0);
    engine_.run();
  }
  std::uint64_t messages() const { return network_.messages(); }

 private:
  void fire(std::uint64_t) override {
    const auto id = network_.add(program_, gpus_, *this);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) network_.begin(id, rank);
  }
  void rank_over(std::uint32_t) override {}

  sim::Engine engine_;
  sim::ChunkNetwork network_;
  const sim::ChunkProgram& program_;
  std::vector<std::uint32_t> gpus_;
};

void ring_of_1024(benchmark::State& state) {
  const Machine machine = cluster();
  const nccl::Tuning tuning =
      nccl::tuning_for(machine, kRanks, kNodes, {{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}});
  const auto lanes = static_cast<std::uint32_t>(state.range(0));
  double messages = 0;
  double mib = 0;
  for (auto _ : state) {
    const auto result = run_in_children({[&] {
      const double begin = cpu_seconds();
      const sim::ChunkProgram program = sim::collective_program(
          nccl::collective_slices(machine, tuning, {CollectiveKind::AllReduce, kSize}),
          CollectiveKind::AllReduce, kRanks, kNodes, 0, lanes);
      Once once{program};
      once.run();
      return std::vector{cpu_seconds() - begin, peak_mib(), static_cast<double>(once.messages())};
    }});
    state.SetIterationTime(result[0][0]);
    mib = result[0][1];
    messages = result[0][2];
  }
  state.counters["peak_MiB"] = mib;
  state.counters["messages"] = messages;
  state.counters["messages/s"] =
      benchmark::Counter(messages, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(ring_of_1024)
    ->ArgName("lanes")
    ->Arg(4)
    ->Arg(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

Program one_all_reduce() {
  const auto read = read_scenario(R"(schema_version: 1
name: bench
nodes: 128
processes: 1024
environment: {NCCL_ALGO: Ring, NCCL_PROTO: Simple}
streams: {s: {flags: non_blocking}}
buffers: {x: {memory: device, size: 64MiB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - nccl_all_reduce: {comm: world, stream: s, buffer: x, type: float32}
    - stream_synchronize: {stream: s}
)",
                                  "bench.yaml");
  FORETRACE_CHECK(read.has_value(), "the bench's scenario is right");
  return read->program;
}

void program_of_1024(benchmark::State& state, Fidelity fidelity) {
  const Machine machine = cluster();
  const Program program = one_all_reduce();
  double mib = 0;
  for (auto _ : state) {
    const auto result = run_in_children({[&] {
      const double begin = cpu_seconds();
      const Timeline timeline = simulate(program, machine, fidelity);
      const double seconds = cpu_seconds() - begin;
      FORETRACE_CHECK(timeline.outcome.kind == Outcome::Kind::Completed, "it ends");
      return std::vector{seconds, peak_mib()};
    }});
    state.SetIterationTime(result[0][0]);
    mib = result[0][1];
  }
  state.counters["peak_MiB"] = mib;
}
BENCHMARK_CAPTURE(program_of_1024, flow, Fidelity::Flow)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(program_of_1024, chunk, Fidelity::Chunk)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretrace

BENCHMARK_MAIN();
