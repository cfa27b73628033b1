#include "hw/trace/activity_tracer.h"

#include <gtest/gtest.h>

namespace foretrace::hw {
namespace {

TEST(ExternalId, GoesThereAndBack) {
  for (const Execution execution :
       {Execution{0, 0}, Execution{7, 123'456'789}, Execution{(1U << 24) - 1, (1ULL << 40) - 1}}) {
    EXPECT_EQ(from_external_id(to_external_id(execution)), execution);
  }
}

TEST(KernelName, LosesItsParametersAndKeepsItsTemplateArguments) {
  EXPECT_EQ(readable_kernel_name("_ZN3foo3barIiEEvPf"), "foo::bar<int>");
  EXPECT_EQ(readable_kernel_name("_ZN12_GLOBAL__N_14spinEl"), "(anonymous namespace)::spin");
}

TEST(KernelName, StaysAsItIsWhenItIsNotMangled) {
  EXPECT_EQ(readable_kernel_name("ampere_sgemm_128x64_nn"), "ampere_sgemm_128x64_nn");
  EXPECT_EQ(readable_kernel_name(nullptr), "");
}

}  // namespace
}  // namespace foretrace::hw
