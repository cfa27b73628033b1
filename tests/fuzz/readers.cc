#include "tests/fuzz/readers.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/capture/captured_scenario.h"
#include "reports/capture/captured_timeline.h"
#include "reports/capture/kineto.h"
#include "reports/compare/compare.h"
#include "reports/compare/convert.h"
#include "reports/compare/output.h"
#include "reports/export/kineto_writer.h"
#include "reports/export/perfetto_writer.h"
#include "reports/export/span_csv.h"
#include "reports/page/lanes_svg.h"
#include "reports/timeline/timeline_check.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/read/scenario.h"
#include "sim/applications/fit/machine.h"
#include "sim/applications/fit_products/table.h"
#include "sim/applications/nccl_tests/log.h"
#include "sim/limits.h"

namespace foretrace::fuzz {
namespace {

/// A reader that promised something did not keep it.
void require(bool kept) {
  if (!kept) std::abort();
}

/// Diagnostics are there, and can be shown.
void require_shown(const Diagnostics& problems, std::string_view text) {
  require(!problems.empty() && !render(problems, text).empty());
}

/// What follows the line "# part.yml" is the text of a part of that name. Written in one file the
/// scenario is the same program.
void read_as_scenario(std::string_view bytes) {
  constexpr std::string_view kPart = "\n# part.yml\n";
  const std::size_t end = std::min(bytes.find(kPart), bytes.size());
  const std::string_view text = bytes.substr(0, end);
  IncludedTexts parts{{"part.yml", std::string{bytes.substr(std::min(end + 1, bytes.size()))}}};
  const auto read = read_scenario(text, "fuzz.yaml", {}, &parts);
  if (!read) return require_shown(read.error(), text);
  static_cast<void>(render(read->warnings, text));
  if (end != bytes.size()) {
    const auto again = read_scenario(self_contained(text, "fuzz.yaml", &parts), "again.yaml");
    require(again.has_value() && again->program.hash == read->program.hash);
  }
  static_cast<void>(too_large_to_simulate(read->program));
}

/// What is written of a machine is read again.
void read_as_machine(std::string_view bytes) {
  try {
    const auto machine = read_machine(bytes, "fuzz.yaml");
    if (!machine) return require_shown(machine.error(), bytes);
    require(read_machine(machine_text(*machine), "again.yaml").has_value());
  } catch (const UsageError&) {  // the machine that it is based on cannot be read
  }
}

/// What is made of a timeline, too: whatever it says, it can be shown.
void read_as_timeline(std::string_view bytes) {
  Timeline timeline;
  try {
    timeline = parse_timeline(bytes, "fuzz.json");
  } catch (const UsageError&) {
    return;
  }
  std::ostringstream out;
  write_timeline(timeline, out);
  require(parse_timeline(out.view(), "again.json").spans.size() == timeline.spans.size());
  const Timeline* const only = &timeline;
  write_span_csv({&only, 1}, out);
  write_perfetto({&only, 1}, out);
  write_kineto(timeline, timeline.lanes.empty() ? 0 : timeline.lanes.front().process, out);
  static_cast<void>(compare_text(compare(timeline, timeline, 0.1)));
  const std::array sides{Side{&timeline, "fuzz"}};
  static_cast<void>(draw_lanes(sides, LayoutLimits{}, SvgUse::Standalone, "lanes", "fuzz"));
}

void read_as_environment(std::string_view bytes) {
  const std::string text{bytes};
  try {
    static_cast<void>(parse_old_environment(text, "environment.json"));
  } catch (const UsageError&) {
  }
  try {
    const Machine machine = new_machine("fuzz", text, "KEY.json");
    require(read_machine(machine_text(machine), "again.yaml").has_value());
  } catch (const UsageError&) {
  }
}

void read_as_nccl_tests(std::string_view bytes, const auto& read) {
  NcclTestsAssumed assumed;
  if (bytes.size() % 2 == 0) assumed.op = NcclTestsOp::AllReduce;
  const auto samples = read(bytes, "fuzz", assumed);
  if (!samples) require_shown(samples.error(), bytes);
}
void read_as_nccl_tests_log(std::string_view bytes) {
  read_as_nccl_tests(bytes, read_nccl_tests_log);
}
void read_as_nccl_tests_csv(std::string_view bytes) {
  read_as_nccl_tests(bytes, read_nccl_tests_csv);
}

void read_as_products(std::string_view bytes) {
  try {
    static_cast<void>(fit_products::parse_table(std::string{bytes}, "products.csv"));
  } catch (const UsageError&) {
  }
}

/// What is made of a trace, too: a timeline that is one, and a scenario that is read again.
void read_as_kineto(std::string_view bytes) {
  capture::Capture all;
  try {
    all.processes.push_back(capture::parse_kineto(bytes, "fuzz.json", all.names));
    capture::check(all);
  } catch (const UsageError&) {
    return;
  }
  require(!what_is_wrong(capture::timeline_of(all)).has_value());
  try {
    const std::string text = capture::scenario_of(all, {}).text;
    const auto read = read_scenario(text, "again.yaml");
    require(read.has_value());
    require(!what_is_wrong(capture::timeline_of(all, read->program, {})).has_value());
  } catch (const UsageError&) {
  }
}

constexpr std::array kReaders{
    FuzzedReader{"scenario", read_as_scenario},
    FuzzedReader{"machine", read_as_machine},
    FuzzedReader{"timeline", read_as_timeline},
    FuzzedReader{"environment", read_as_environment},
    FuzzedReader{"nccl_tests_log", read_as_nccl_tests_log},
    FuzzedReader{"nccl_tests_csv", read_as_nccl_tests_csv},
    FuzzedReader{"products", read_as_products},
    FuzzedReader{"kineto", read_as_kineto},
    FuzzedReader{"arguments", read_as_arguments},
    FuzzedReader{"training_steps", read_as_training_steps},
    FuzzedReader{"published_steps", read_as_published_steps},
    FuzzedReader{"figures", read_as_figures},
    FuzzedReader{"blind_round", read_as_blind_round},
    FuzzedReader{"sweep", read_as_sweep},
    FuzzedReader{"sweep_rows", read_as_sweep_rows},
    FuzzedReader{"config", read_as_config},
    FuzzedReader{"page", read_as_page},
    FuzzedReader{"nsight", read_as_nsight},
    FuzzedReader{"marked_document", read_as_marked_document},
    FuzzedReader{"nvbandwidth", read_as_nvbandwidth},
    FuzzedReader{"calls", read_as_calls},
    FuzzedReader{"kernel_table", read_as_kernel_table},
    FuzzedReader{"host", read_as_host},
    FuzzedReader{"part", read_as_part},
    FuzzedReader{"composition", read_as_composition},
    FuzzedReader{"transfer", read_as_transfer},
    FuzzedReader{"transfer_judge", read_as_transfer_judge},
    FuzzedReader{"serving", read_as_serving},
    FuzzedReader{"chakra", read_as_chakra},
    FuzzedReader{"simai", read_as_simai},
};

}  // namespace

std::span<const FuzzedReader> readers() { return kReaders; }

const FuzzedReader* find_reader(std::string_view name) {
  const auto* const found = std::ranges::find(kReaders, name, &FuzzedReader::name);
  return found == kReaders.end() ? nullptr : found;
}

}  // namespace foretrace::fuzz
