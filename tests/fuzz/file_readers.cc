// Readers of tables and reports that take a file: the bytes are put into one in TMPDIR.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "models/kernels/kernel_table.h"
#include "models/machine/machine.h"
#include "models/what_if/known_host.h"
#include "reports/accuracy/blind_round.h"
#include "reports/capture/captured_scenario.h"
#include "reports/capture/captured_timeline.h"
#include "reports/capture/nsight.h"
#include "scenarios/interchange/interchange.h"
#include "reports/page/marked_text.h"
#include "reports/timeline/timeline_check.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/read/scenario.h"
#include "sim/applications/accept/nvbandwidth.h"
#include "sim/applications/sweep/ledger.h"
#include "sim/applications/sweep/table.h"
#include "sim/applications/training/measured_steps.h"
#include "sim/applications/training/published_steps.h"
#include "sim/cli/judge/published_figures.h"
#include "tests/fuzz/fuzz_directory.h"
#include "tests/fuzz/readers.h"

namespace foretrace::fuzz {
namespace fs = std::filesystem;

/// A record of a captured program, and the scenario that it becomes.
void read_as_calls(std::string_view bytes) {
  try {
    directory().file("rank0.calls.jsonl", bytes);
    static_cast<void>(read_scenario(
        "schema_version: 1\nname: step\nprocesses: 2\ncaptured_step: {calls: rank0.calls.jsonl}\n",
        (directory().path() / "step.yaml").string()));
  } catch (const UsageError&) {
  }
}

/// Text or JSON: matrices with rows of equal length, or what is wrong.
void read_as_nvbandwidth(std::string_view bytes) {
  const auto read = read_nvbandwidth(bytes, "fuzz.log");
  if (!read) {
    if (render(read.error(), bytes).empty()) std::abort();
    return;
  }
  static_cast<void>(is_nvbandwidth(bytes));
  if (read->matrices.empty()) std::abort();
}

void read_as_kernel_table(std::string_view bytes) {
  try {
    const kernels::KernelTable table{directory().file("kernels.csv", bytes)};
    static_cast<void>(table.estimate({{"copy.1", 8, 128, 64, 64, 1}, 1e6, 1e6}));
  } catch (const UsageError&) {
  }
}

void read_as_host(std::string_view bytes) {
  try {
    static const Machine kMachine = load_machine("h100-nvswitch-8");
    Machine machine = kMachine;
    static_cast<void>(take_host(machine, directory().file("host.yaml", bytes).string()));
  } catch (const UsageError&) {
  }
}

void read_as_training_steps(std::string_view bytes) {
  try {
    static_cast<void>(sim::read_measured_steps(directory().file("results.jsonl", bytes)));
  } catch (const UsageError&) {
  }
}

/// What is made of them without a simulation, too.
void read_as_published_steps(std::string_view bytes) {
  try {
    const auto steps = sim::read_published_steps(directory().file("training.csv", bytes));
    for (const sim::PublishedStep& step : steps) static_cast<void>(sim::yardstick(step, steps));
  } catch (const UsageError&) {
  }
}

void read_as_figures(std::string_view bytes) {
  try {
    static_cast<void>(read_figures(directory().file("figures.csv", bytes)));
  } catch (const UsageError&) {
  }
}

void read_as_blind_round(std::string_view bytes) {
  try {
    static_cast<void>(directory().file("rounds/round-1/evaluation-fuzz.csv", bytes));
    static_cast<void>(load_blind_rounds(directory().path() / "rounds"));
  } catch (const UsageError&) {
  }
}

/// The rows of a sweep of 4 points that was stopped, behind their first line; when they are all
/// there, its table.
void read_as_sweep_rows(std::string_view bytes) {
  const sweep::Sweep sweep{"fuzz.yaml", "name: fuzz", {{sweep::Kind::Set, "n", {"1", "2"}}}, {}};
  constexpr std::size_t kPoints = 2;
  static const std::string head = [&] {
    const fs::path file = directory().path() / "head.jsonl";
    sweep::Ledger{file, sweep, kPoints}.append({{"point", 0}});
    std::string line;
    std::ifstream in{file};
    std::getline(in, line);
    return line + "\n";
  }();
  try {
    sweep::Ledger ledger{directory().file("rows.jsonl", head + std::string{bytes}), sweep, kPoints};
    for (const std::size_t point : ledger.done()) {
      if (point >= kPoints) std::abort();
    }
    if (ledger.done().size() == kPoints)
      static_cast<void>(sweep::csv_of(ledger.finish({sweep.axes, {}})));
  } catch (const UsageError&) {
  }
}

void read_as_nsight(std::string_view bytes) {
  capture::Capture all;
  try {
    all.processes = capture::read_nsight(directory().file("report.sqlite", bytes), all.names);
    capture::check(all);
  } catch (const UsageError&) {
    return;
  }
  if (what_is_wrong(capture::timeline_of(all)).has_value()) std::abort();
}

/// What it becomes is a scenario, or is too large to be one.
void read_as_chakra(std::string_view bytes) {
  try {
    const auto made =
        interchange::read_chakra({{"fuzz.et", std::string{bytes}}}, {"fuzz", 2, 1e15, 1e12});
    if (made.text.size() < kLargestText) static_cast<void>(read_scenario(made.text, "fuzz.yaml"));
  } catch (const UsageError&) {
  }
}

void read_as_simai(std::string_view bytes) {
  try {
    const auto made = interchange::read_simai({"fuzz.txt", std::string{bytes}}, {"fuzz", 0, 0, 0});
    if (made.text.size() < kLargestText) static_cast<void>(read_scenario(made.text, "fuzz.yaml"));
  } catch (const UsageError&) {
  }
}

void read_as_marked_document(std::string_view bytes) {
  try {
    const std::string once = with_marked_text(bytes, "fuzz", "generated", "fuzz.md");
    if (with_marked_text(once, "fuzz", "generated", "fuzz.md") != once) std::abort();
  } catch (const UsageError&) {
  }
}

}  // namespace foretrace::fuzz
