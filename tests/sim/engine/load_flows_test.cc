// SimGrid is loaded when the first flow starts, and not before.
#include "sim/engine/load_flows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/base/text/text_file.h"
#include "sim/engine/engine.h"

namespace foretrace::sim {
namespace {

using namespace literals;
using testing::HasSubstr;
using testing::Not;

struct Waiter : Handler {
  void fire(std::uint64_t) override { at = engine.now(); }
  Engine& engine;
  TimePoint at{};
  explicit Waiter(Engine& e) : engine{e} {}
};

/// The files that are mapped into this process.
std::string mapped() { return read_text_file("/proc/self/maps"); }

TEST(LoadFlows, IsForTheFirstFlowOnly) {
  Engine without;
  const LinkId unused = without.add_link("link", 1.0_GBps);
  without.path({unused});
  Waiter event{without};
  without.queue().at(TimePoint{3_us}, event, 0);
  without.run();
  EXPECT_EQ(event.at, TimePoint{3_us});
  EXPECT_THAT(mapped(), Not(HasSubstr("simgrid")));
  EXPECT_THAT(mapped(), Not(HasSubstr(kFlowsFile)));

  Engine with;
  const LinkId link = with.add_link("link", 8.0_GBps);
  with.set_bandwidth(link, 1.0_GBps);  // of which SimGrid hears when it is there
  Waiter arrival{with};
  with.start_flow(with.path({link}), Bytes{10'000}, arrival, 0);
  with.run();
  EXPECT_EQ(arrival.at, TimePoint{10_us});
  EXPECT_THAT(mapped(), HasSubstr("simgrid"));
  EXPECT_THAT(mapped(), HasSubstr(kFlowsFile));
}

TEST(LoadFlows, MayBeAhead) {
  load_flows_ahead();
  EXPECT_THAT(mapped(), HasSubstr(kFlowsFile));
  EXPECT_EQ(&load_flows(), &load_flows());
}

}  // namespace
}  // namespace foretrace::sim
