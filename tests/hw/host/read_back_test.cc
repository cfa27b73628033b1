// The file that foretrace-hw host writes is a host part that the simulator's machines take. The two
// programs share no code but this test.
#include <gtest/gtest.h>

#include "hw/host/host_file.h"
#include "hw/host/probes.h"
#include "models/machine/parts/host_part.h"
#include "scenarios/base/text/diagnostic.h"

namespace foretrace {
namespace {

Checked<Part> read_back(const hw::HostFile& file) {
  return read_part(hw::host_file_text(file), "host.yaml", PartFolder::Hosts);
}

TEST(AHostsOwnFile, IsReadBackAsItWasMeasured) {
  hw::HostFile file;
  file.system = hw::read_system();
  file.date = "2026-11-29";
  file.measured = hw::measure(hw::call_probes(file.system), 0, 1);
  const Checked<Part> host = read_back(file);
  ASSERT_TRUE(host) << render(host.error(), hw::host_file_text(file));
  EXPECT_EQ(host->value("cores"), static_cast<double>(file.system.cores));
  Machine machine = load_machine("h200-1");
  take_host_part(machine, *host, [](Param, std::optional<double>, double) {});
  EXPECT_EQ(machine.count(Param::HostCores), file.system.cores);
  for (const hw::Measured& one : file.measured) {
    if (one.quantity.key != "host.parallel") continue;
    EXPECT_NEAR(machine.get(Param::HostParallelCall).value, one.value, 1e-3 * one.value);
  }
}

TEST(AHostsOwnFile, IsReadWhateverTheSystemCallsItsProcessor) {
  for (const char* cpu : {"", "A \"quoted\" CPU @ 2.1GHz: {x}", "back\\slash", "tab\tand # hash"}) {
    hw::HostFile file;
    file.system.cpu = cpu;
    file.measured = {{{"host.touch_bandwidth", hw::MeasuredUnit::Rate}, 2.5e9, 0.04, 3},
                     {{"words: of [people]", hw::MeasuredUnit::Ratio, "64MiB"}, 0.5, 0, 3}};
    const Checked<Part> host = read_back(file);
    ASSERT_TRUE(host) << render(host.error(), hw::host_file_text(file));
    EXPECT_EQ(host->parameters.size(), 2U) << "cores, and the first touch";
  }
}

}  // namespace
}  // namespace foretrace
