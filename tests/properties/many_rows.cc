// many_rows COUNT SEED [DIRECTORY]: random rows until COUNT of them were simulated, those of one
// program in one process; the seed of today: date +%Y%m%d. What fails is written to DIRECTORY (the
// current one) and counted. Exit code 1 when anything did.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/properties/judged_rows.h"
#include "tests/properties/random_rows.h"

namespace foretrace::test {
namespace {

struct Kind {
  const char* name;
  RowsShape shape;
};
/// Most of the rows end; those that differ are one to a program, which a hang ends.
constexpr Kind kKinds[] = {{"NCCL, alike", {.rows = 40, .only_nccl = true}},
                           {"NCCL, that differ", {.rows = 1, .only_nccl = true, .differ = true}},
                           {"all operations", {.rows = 40}}};

struct Counts {
  std::uint64_t programs = 0, rows = 0, spans = 0, hang = 0, refused = 0, failed = 0;
};

std::string complaint(const Kind& kind, const JudgedRows& rows) {
  if (!kind.shape.differ && rows.foretold != Foretold::Ends) return "check does not call it sound";
  if (!rows.agrees()) return "check and simulate do not agree";
  return rows.violations > 0 ? "not in order" : "";
}

/// One program; what is wrong with it.
std::string run(const Kind& kind, const std::string& text, const Machine& machine,
                Fidelity fidelity, Counts& counts) {
  ++counts.programs;
  try {
    const JudgedRows rows =
        judged(run_in_children({job_of_rows(text, machine, fidelity)}).front());
    counts.spans += rows.spans;
    counts.refused += rows.is_refused;
    if (rows.is_refused) return "";
    counts.hang += rows.outcome != Outcome::Kind::Completed;
    counts.rows += kind.shape.rows;
    return complaint(kind, rows);
  } catch (const std::exception& error) {
    return error.what();
  }
}

int run_all(std::uint64_t count, std::uint64_t seed, const std::filesystem::path& directory) {
  const Machine machines[] = {load_machine("h200-nvswitch-8"), load_machine("a100-nvswitch-8"),
                              load_machine("v100-pcie-4"), load_machine("h100-efa-8")};
  Counts counts[std::size(kKinds)];
  const auto all_rows = [&] {
    std::uint64_t rows = 0;
    for (const Counts& of_kind : counts) rows += of_kind.rows;
    return rows;
  };
  for (std::uint64_t i = 0; all_rows() < count; ++i) {
    const std::size_t k = i % 16 == 0 ? 2 : i % 2;
    const Kind& kind = kKinds[k];
    const std::uint64_t number = seed * 1'000'003 + i;
    const std::string text =
        random_rows(Choices{number, 64U * kind.shape.rows}, kind.shape, "rows");
    const Fidelity fidelity = i / 4 % 2 == 0 ? Fidelity::Flow : Fidelity::Chunk;
    const Machine& machine = machines[i / 8 % std::size(machines)];
    const std::string wrong = run(kind, text, machine, fidelity, counts[k]);
    if (wrong.empty()) continue;
    ++counts[k].failed;
    const auto file = directory / fmt::format("rows_{}_{}.yaml", seed, i);
    std::ofstream{file} << text << fmt::format("# {}; machine {}, fidelity {}\n", wrong,
                                               machine.name, fidelity == Fidelity::Flow ? "flow" : "chunk");
    fmt::print("{}: {}\n", file.string(), wrong);
    std::fflush(stdout);
  }
  std::uint64_t failed = 0;
  for (std::size_t k = 0; k < std::size(kKinds); ++k) {
    const Counts& c = counts[k];
    fmt::print("{}: {} rows in {} programs, {} kernels, copies and calls, {} hang, {} refused, {} failed\n",
               kKinds[k].name, c.rows, c.programs, c.spans, c.hang, c.refused, c.failed);
    failed += c.failed;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace foretrace::test

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    fmt::print(stderr, "usage: many_rows COUNT SEED [DIRECTORY]\n");
    return 2;
  }
  try {
    return foretrace::test::run_all(std::strtoull(argv[1], nullptr, 10),
                                    std::strtoull(argv[2], nullptr, 10), argc > 3 ? argv[3] : ".");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
