// foretrace nccl-tests: 30 sizes from 8 B to 4 GiB on 8 ranks, scenario text to table. SimGrid
// allows one simulation per process, so each iteration is a child.
#include <benchmark/benchmark.h>

#include "sim/applications/nccl_tests/predict.h"

namespace foretrace {
namespace {

void predict_thirty_sizes(benchmark::State& state, NcclTestsOp op, std::uint32_t processes,
                          std::uint32_t graph_launches) {
  const Machine machine = load_machine("h200-nvswitch-8");
  NcclTestsPlan plan;
  plan.op = op;
  plan.processes = processes;
  plan.gpus = 8 / processes;
  plan.graph_launches = graph_launches;
  for (const std::uint64_t bytes : sizes_in({8, 4ull << 30, 0, 2})) {
    const NcclTestsType& type = parse_nccl_tests_type(plan.type);
    const NcclTestsSize size = nccl_tests_size(op, bytes, type, plan.ranks());
    if (size.count > 0) plan.sizes.push_back(size);
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(predict_nccl_tests(std::vector{plan}, machine));
  }
}
BENCHMARK_CAPTURE(predict_thirty_sizes, all_reduce_8_processes, NcclTestsOp::AllReduce, 8, 0)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(predict_thirty_sizes, all_reduce_one_thread, NcclTestsOp::AllReduce, 1, 0)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(predict_thirty_sizes, all_reduce_graphs, NcclTestsOp::AllReduce, 8, 10)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(predict_thirty_sizes, alltoall_8_processes, NcclTestsOp::AllToAll, 8, 0)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretrace

BENCHMARK_MAIN();
