// Random rows of all of NCCL's operations, and of others between them: nothing crashes, what ends
// ends as `check` foretells, in the order that the rules demand, and the same twice.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

#include "tests/properties/judged_rows.h"
#include "tests/properties/random_rows.h"

namespace foretrace::test {
namespace {

const Machine& any_machine() {
  static const std::array kMachines{load_machine("h200-nvswitch-8"), load_machine("a100-nvswitch-8"),
                                    load_machine("v100-pcie-4"), load_machine("h100-efa-8")};
  return kMachines[*rc::gen::inRange<std::size_t>(0, kMachines.size())];
}

void check_rows(const RowsShape& shape) {
  const auto numbers =
      *rc::gen::resize(300, rc::gen::arbitrary<std::vector<std::uint32_t>>()).as("choices");
  const std::string text = random_rows(Choices{numbers}, shape, "rows");
  RC_LOG() << text;
  const Machine& machine = any_machine();
  const Fidelity fidelity = *rc::gen::arbitrary<bool>() ? Fidelity::Chunk : Fidelity::Flow;
  const Job job = job_of_rows(text, machine, fidelity);
  const auto twice = run_in_children({job, job});
  const JudgedRows rows = judged(twice[0]);
  RC_CLASSIFY(rows.is_refused, "refused");
  RC_CLASSIFY(!rows.is_refused && rows.outcome != Outcome::Kind::Completed, "hang");
  if (!shape.differ) RC_ASSERT(rows.foretold == Foretold::Ends);
  RC_ASSERT(rows.agrees());
  RC_ASSERT(rows.violations == 0U);
  RC_ASSERT(rows.digest == judged(twice[1]).digest);
}

RC_GTEST_PROP(RandomRows, OfNcclThatAllRanksCallAlikeEnd, ()) {
  check_rows({.rows = 3, .only_nccl = true});
}

RC_GTEST_PROP(RandomRows, OfAllOperationsEnd, ()) { check_rows({.rows = 3}); }

RC_GTEST_PROP(RandomRows, InWhichRanksDifferEndOrHangAsCheckSays, ()) {
  check_rows({.rows = 1, .only_nccl = true, .differ = true});
}

}  // namespace
}  // namespace foretrace::test
