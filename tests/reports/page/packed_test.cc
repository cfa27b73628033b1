#include "reports/page/packed.h"

#include <gtest/gtest.h>

namespace foretrace {
namespace {

TEST(Packed, GivesWayWhereMostIsToBeHad) {
  // sizes by level: 100, 40, 10 and 30, 20, 10
  const auto make = [](std::size_t index, std::size_t level) {
    constexpr std::size_t kSizes[2][3] = {{100, 40, 10}, {30, 20, 10}};
    return std::string(kSizes[index][level], 'x');
  };
  const auto sizes = [&](std::size_t bytes) {
    const auto made = made_within(bytes, 2, 3, make);
    return std::pair{made[0].size(), made[1].size()};
  };
  EXPECT_EQ(sizes(130), std::pair(std::size_t{100}, std::size_t{30}));
  EXPECT_EQ(sizes(129), std::pair(std::size_t{40}, std::size_t{30}));
  EXPECT_EQ(sizes(40), std::pair(std::size_t{10}, std::size_t{30}));
  EXPECT_EQ(sizes(1), std::pair(std::size_t{10}, std::size_t{10}));  // no less is to be had
}

}  // namespace
}  // namespace foretrace
