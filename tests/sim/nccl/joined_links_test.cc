// Ranks whose links nothing takes apart share them: the work for a collective does not grow with
// the square of its ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/machine/machine.h"
#include "scenarios/read/scenario.h"
#include "sim/engine/engine.h"
#include "sim/record/recorder.h"
#include "sim/simulate.h"
#include "sim/world.h"

namespace foretrace::sim {
namespace {

Program all_reduce_of(std::uint32_t ranks, const std::string& more = "") {
  const std::string text = fmt::format(R"(schema_version: 1
name: a
nodes: {}
processes: {}
streams: {{s: {{flags: non_blocking}}}}
communicators: {{world: {{members: all_devices, init: rank}}}}
buffers: {{x: {{memory: device, size: 64MB}}, y: {{memory: device, size: 64MB}}, z: {{memory: device, size: 64MB}}}}
threads:
  main:
    - nccl_all_reduce: {{comm: world, stream: s, buffer: x, type: float32}}
    - gemm: {{stream: s, m: 1024, n: 1024, k: 1024, type: float32, a: y, b: y, c: z}}
{})",
                                       (ranks + 7) / 8, ranks, more);
  const auto read = read_scenario(text, "a.yaml");
  if (!read) throw std::runtime_error{render(read.error(), text)};
  return read->program;
}

std::size_t path_links(const Program& program) {
  const Machine machine = load_machine("h100-nvswitch-8");
  Engine engine;
  Recorder recorder{program, machine};
  const World world{engine,   program,        machine,
                    recorder, Fidelity::Flow, std::vector<bool>(program.processes, true)};
  return engine.path_links();
}

TEST(JoinedLinks, AreAsManyForAThousandRanksAsForEight) {
  EXPECT_EQ(path_links(all_reduce_of(1024)), path_links(all_reduce_of(8)));
}

TEST(JoinedLinks, AreApartWhereRanksSendToEachOther) {
  const std::string sends = R"(
    - nccl_send: {comm: world, stream: s, buffer: x, size: 1MB, type: float32, peer: (process + 1) % processes}
    - nccl_recv: {comm: world, stream: s, buffer: y, size: 1MB, type: float32, peer: (process + 7) % processes}
)";
  EXPECT_GT(path_links(all_reduce_of(8, sends)), 8U * 2);
}

TEST(JoinedLinks, AreAsWideAsTheNarrowestOfThem) {
  Engine engine;
  const auto gb = [](double value) { return Bandwidth::gigabytes_per_second(value); };
  JoinedLink joined{engine.add_link("a", gb(100)), gb(100)};
  const std::size_t one = joined.add_member(), other = joined.add_member();
  EXPECT_EQ(joined.width(), gb(100));
  joined.set_bandwidth(engine, one, gb(50));
  joined.set_bandwidth(engine, other, gb(40));
  EXPECT_EQ(joined.width(), gb(40));
  joined.set_bandwidth(engine, other, gb(100));
  EXPECT_EQ(joined.width(), gb(50));
}

}  // namespace
}  // namespace foretrace::sim
