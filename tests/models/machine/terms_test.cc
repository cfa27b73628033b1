// The catalogue of terms, and what leaving one out does.
#include "models/machine/terms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "models/cost/kernel.h"
#include "models/cost/products/choice.h"
#include "models/cost/stream.h"
#include "models/machine/machine.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "tests/models/cost/costed_machine.h"

namespace foretrace {
namespace {

constexpr std::size_t kMostTerms = 25;  // beyond the core; a new one comes when another goes

TEST(Terms, AreFewAndEachSaysWhatItIs) {
  EXPECT_LE(kTermCount, kMostTerms);
  std::set<std::string_view> ids;
  for (std::size_t i = 0; i < kTermCount; ++i) {
    const TermInfo& term = info(static_cast<Term>(i));
    EXPECT_TRUE(ids.insert(term.id).second) << term.id;
    EXPECT_EQ(term_named(term.id), static_cast<Term>(i));
    EXPECT_FALSE(term.explains.empty()) << term.id;
    EXPECT_FALSE(term.gain.empty()) << term.id;
    const auto page = machine_directory().parent_path() / "evidence" / term.evidence;
    ASSERT_TRUE(std::filesystem::is_regular_file(page)) << page;
    const std::string heading = fmt::format("\n### {}\n", term.id);
    EXPECT_NE(read_text_file(page).find(heading), std::string::npos) << page << heading;
  }
}

TEST(Terms, NameParametersThatThereAre) {
  for (std::size_t i = 0; i < kTermCount; ++i) {
    const TermInfo& term = info(static_cast<Term>(i));
    std::string_view left = term.parameters;
    while (!left.empty()) {
      const std::string_view key = left.substr(0, left.find(", "));
      EXPECT_TRUE(param_named(key).has_value()) << term.id << ": " << key;
      left.remove_prefix(std::min(left.size(), key.size() + 2));
    }
  }
}

std::string refusal(const std::string& text) {
  try {
    terms_of(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Terms, AreNamedOnACommandLine) {
  const TermSet both = terms_of("term=small_array,unaligned");
  EXPECT_EQ(both.count(), 2U);
  EXPECT_TRUE(both.test(static_cast<std::size_t>(Term::SmallArray)));
  EXPECT_NE(refusal("term=small_aray").find("small_array"), std::string::npos);
  EXPECT_NE(refusal("term=").find("unknown term ''"), std::string::npos);
  EXPECT_NE(refusal("small_array").find("term=NAME"), std::string::npos);
}

TEST(Terms, LeftOutOfAMachineAreNotTaken) {
  Machine machine = load_machine("h200-nvswitch-8");
  EXPECT_TRUE(machine.takes(Term::SmallArray));
  machine.leave_out(terms_of("term=small_array"));
  EXPECT_FALSE(machine.takes(Term::SmallArray));
  EXPECT_TRUE(machine.takes(Term::Unaligned));
}

/// A kernel's time alone, in us, with every term and without this one.
struct Both {
  double with, without;
};
template <class Function, class... Args>
Both alone(Term term, const Function& function, const Args&... args) {
  Machine machine = load_machine("h200-nvswitch-8");
  const auto us = [&] { return to_us(cost::answer(machine, function, args...).alone); };
  const double with = us();
  machine.leave_out(TermSet{}.set(static_cast<std::size_t>(term)));
  return {with, us()};
}

TEST(Terms, OfMemoryKernelsAreWhatIsMissingWithoutThem) {
  const double base = 1e6 * load_machine("h200-nvswitch-8").get(Param::KernelBase).value;
  const cost::Pass small{.bytes = 2048, .distance = 4096};
  const std::vector<cost::Pass> two{small, small};
  const Both array = alone(Term::SmallArray, cost::elementwise_cost, two);
  EXPECT_NEAR(array.without - array.with, 0.14 * base, 1e-3) << "one load of each thread";
  const cost::Pass large{.bytes = 20e6, .distance = 20e6};
  const std::vector<cost::Pass> in_place{large, large};
  const Both late = alone(Term::LateBlocks, cost::elementwise_cost, in_place);
  EXPECT_NEAR(late.with - late.without, 1, 0.05) << "more blocks than places";
  cost::Pass read = small;
  read.reread = true;
  const Both reread = alone(Term::Reread, cost::reduction_cost, read);
  EXPECT_GT(reread.without, reread.with);
}

TEST(Terms, OfGemmsAreWhatIsMissingWithoutThem) {
  cost::Product product{.type = DataType::Float16, .m = 512, .n = 256, .k = 256, .in_graph = true};
  const Both behind = alone(Term::BehindOthers, cost::gemm_cost, product);
  EXPECT_NEAR(behind.with - behind.without, 0.5, 1e-3);
  product.in_graph = false;
  product.cached_eighths = 0;
  const Both cold = alone(Term::ColdOperands, cost::gemm_cost, product);
  EXPECT_GT(cold.with, cold.without + 0.3) << "half a microsecond until the first come";
}

TEST(Terms, AHandedOnEventTakesNoTimeWithoutItsTerm) {
  Machine machine = load_machine("h200-nvswitch-8");
  const cost::Neighbours record{.before = cost::Before::Event, .next = cost::Entry::Record};
  EXPECT_GT(cost::answer(machine, cost::gap, record), Duration{0});
  machine.leave_out(terms_of("term=hands_on"));
  EXPECT_EQ(cost::answer(machine, cost::gap, record), Duration{0});
}

}  // namespace
}  // namespace foretrace
