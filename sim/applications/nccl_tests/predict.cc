#include "sim/applications/nccl_tests/predict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <stdexcept>

#include "scenarios/base/text/errors.h"
#include "scenarios/program/program_walk.h"
#include "scenarios/read/scenario.h"
#include "sim/engine/children.h"
#include "sim/environment_check.h"
#include "sim/record/rests_on.h"
#include "sim/simulate.h"

namespace foretrace {
namespace {

constexpr std::uint32_t kMostIterations = 20;
constexpr std::uint32_t kMostLaunches = 4;

/// The scenario is ours, so what is wrong with it is a flag's value: no lines are shown.
[[noreturn]] void refuse(const Diagnostics& problems) {
  std::string text;
  for (const Diagnostic& problem : problems) {
    if (problem.severity != Severity::Error) continue;
    text += (text.empty() ? "" : "\n") + problem.message;
    if (!problem.hint.empty()) text += "\n  hint: " + problem.hint;
  }
  throw UsageError{text};
}

Program program_of(const NcclTestsPlan& plan, const std::vector<NcclTestsLoop>& loops) {
  auto read = read_scenario(nccl_tests_scenario(plan, loops), "nccl-tests");
  if (!read) refuse(read.error());
  return std::move(read->program);
}

constexpr std::uint32_t kNoRegion = 0xffffffff;

/// Which region of its thread (counted from 0) an operation belongs to, by OpId.
std::vector<std::uint32_t> regions_of(const Program& program) {
  std::vector<std::uint32_t> region_of(program.op_count, kNoRegion);
  for (const HostThread& thread : program.threads) {
    std::uint32_t next = 0;
    for_each_op(thread.ops, [&](const Op& op, Around around) {
      const std::uint32_t outside = around.empty() ? kNoRegion : region_of[around.back()->id.value];
      region_of[op.id.value] = std::holds_alternative<Region>(op.kind) ? next++ : outside;
    });
  }
  return region_of;
}

/// One timed region of the text, over all ranks.
struct Measured {
  double total_us = 0;             ///< mean of the region's instances
  double low_us = 0, high_us = 0;  ///< of their bands' ends
  std::size_t samples = 0;
  const SpanDetail* detail = nullptr;
};

std::vector<Measured> read_off(const NcclTestsPlan& plan, const Program& program,
                               const std::vector<NcclTestsLoop>& loops, const Timeline& timeline) {
  const std::vector<std::uint32_t> region_of = regions_of(program);
  std::vector<Measured> measured(plan.sizes.size() * loops.size());
  for (const RegionSamples& region : timeline.regions) {
    Measured& at = measured.at(region_of.at(region.op));
    const double us = static_cast<double>(region.samples_ns.front()) * 1e-3;
    at.total_us += us;
    at.low_us += us * region.low_factor;
    at.high_us += us * region.high_factor;
    ++at.samples;
  }
  for (Measured& at : measured) {
    for (double* const sum : {&at.total_us, &at.low_us, &at.high_us}) {
      *sum /= static_cast<double>(at.samples);
    }
  }
  for (const Span& span : timeline.spans) {
    const std::uint32_t region = region_of.at(span.op);
    if (region == kNoRegion || span.detail == 0) continue;
    const SpanDetail& detail = timeline.details.at(span.detail);
    if (detail.channels > 0) measured.at(region).detail = &detail;
  }
  return measured;
}

/// Of tables by size: below 64 KiB, 1 MiB and 16 MiB, and the rest.
constexpr std::size_t kSizeClasses = 4;
std::size_t size_class(std::uint64_t bytes) {
  return bytes < 64u << 10 ? 0 : bytes < 1u << 20 ? 1 : bytes < 16u << 20 ? 2 : 3;
}
constexpr std::array kSizeNames{"below 64 KiB", "from 64 KiB", "from 1 MiB", "from 16 MiB"};

/// What says how far tables of other owners were off; none where none were looked at. A class that
/// a file does not tell is as the one below it, of the same side of 1 MiB.
std::optional<Param> width_of(const Machine& machine, const NcclTestsPlan& plan, std::size_t size) {
  using enum Param;
  constexpr std::array<Param, kSizeClasses> kOneNode{BlindTablesSmall, BlindTablesMiddle,
                                                     BlindTablesLarge, BlindTablesHuge};
  constexpr std::array<Param, kSizeClasses> kNodes{BlindTablesNetworkSmall,
                                                   BlindTablesNetworkMiddle,
                                                   BlindTablesNetworkLarge, BlindTablesNetworkHuge};
  const bool alone = plan.nodes > 1 && plan.ranks() == plan.nodes;
  if (alone && machine.has(BlindTablesAlone)) return BlindTablesAlone;
  const auto& params = plan.nodes > 1 ? kNodes : kOneNode;
  if (machine.has(params.at(size))) return params.at(size);
  const Param below = params.at(size / 2 * 2);
  return machine.has(below) ? std::optional{below} : std::nullopt;
}

/// The band is what such tables showed. Where the environment takes NCCL's choice away, which no
/// table shows, it is no narrower than what is known of the parameters.
void set_band(NcclTestsRow& row, double width, const NcclTestsPlan& plan) {
  const double low = row.time_us / (1 + width), high = row.time_us * (1 + width);
  const bool is_as_in_tables = plan.environment.empty();
  row.low_us = is_as_in_tables ? low : std::min(row.low_us, low);
  row.high_us = is_as_in_tables ? high : std::max(row.high_us, high);
}

/// "note: bands: below 64 KiB 12 %, from 64 KiB 15 %: 88 % of ..."
std::string bands_text(const Machine& machine, const NcclTestsPlan& plan) {
  std::map<std::string, std::vector<std::string>> by_source;
  std::optional<Param> last;
  for (const NcclTestsSize& size : plan.sizes) {
    const auto param = width_of(machine, plan, size_class(size.bytes));
    if (!param || param == last) continue;
    last = param;
    const ParamValue& value = machine.get(*param);
    auto& said = by_source[value.from];
    std::string text =
        fmt::format("{} {:.0f} %", kSizeNames.at(size_class(size.bytes)), 100 * value.value);
    if (std::ranges::find(said, text) == said.end()) said.push_back(std::move(text));
  }
  std::string text;
  for (const auto& [from, said] : by_source) {
    text += fmt::format("note: bands: {}: {}\n", fmt::join(said, ", "), from);
  }
  return text;
}

/// Children send numbers only.
void put(std::vector<double>& numbers, const std::string& text) {
  numbers.push_back(static_cast<double>(text.size()));
  numbers.insert(numbers.end(), text.begin(), text.end());
}

std::string get_text(std::vector<double>::const_iterator& at) {
  std::string text(static_cast<std::size_t>(*at++), ' ');
  for (char& c : text) c = static_cast<char>(*at++);
  return text;
}

std::vector<double> encode(const std::vector<NcclTestsRow>& rows) {
  std::vector<double> numbers;
  for (const NcclTestsRow& row : rows) {
    numbers.insert(numbers.end(), {row.time_us, row.low_us, row.high_us, double(row.channels)});
    put(numbers, row.algorithm);
    put(numbers, row.protocol);
    put(numbers, row.rests_on);
  }
  return numbers;
}

std::vector<NcclTestsRow> decode(const NcclTestsPlan& plan, const std::vector<double>& numbers) {
  std::vector<NcclTestsRow> rows;
  auto at = numbers.begin();
  for (const NcclTestsSize& size : plan.sizes) {
    NcclTestsRow row{size, at[0], at[1], at[2], {}, {}, static_cast<std::uint32_t>(at[3]), {}};
    at += 4;
    row.algorithm = get_text(at);
    row.protocol = get_text(at);
    row.rests_on = get_text(at);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::vector<NcclTestsLoop> simulated_loops(const NcclTestsPlan& plan) {
  const NcclTestsLoop longest{std::min(plan.iterations, kMostIterations),
                              std::min(plan.graph_launches, kMostLaunches)};
  std::vector<NcclTestsLoop> loops{longest};
  if (plan.iterations > longest.iterations) {
    loops.push_back({longest.iterations / 2, longest.launches});
  }
  if (plan.graph_launches > longest.launches) {
    loops.push_back({longest.iterations, longest.launches / 2});
  }
  return loops;
}

double whole_time(const NcclTestsPlan& plan, const std::vector<NcclTestsLoop>& loops,
                  const std::vector<double>& times) {
  const NcclTestsLoop& longest = loops.front();
  const double more = static_cast<double>(plan.iterations) - longest.iterations;
  double per_iteration = 0;  // more of each of longest.launches graphs, or of the loop
  double time = times.front();
  for (std::size_t i = 1; i < loops.size(); ++i) {
    const NcclTestsLoop& shorter = loops[i];
    if (shorter.iterations < longest.iterations) {
      per_iteration = (times.front() - times[i]) / (longest.iterations - shorter.iterations);
      time += more * per_iteration;
    } else {
      const double per_launch = (times.front() - times[i]) / (longest.launches - shorter.launches) +
                                more * per_iteration / longest.launches;
      time += (static_cast<double>(plan.graph_launches) - longest.launches) * per_launch;
    }
  }
  return time;
}

std::vector<NcclTestsRow> predict_nccl_tests(const NcclTestsPlan& plan, const Machine& base) {
  const Machine machine = machine_of(plan, base);
  NcclTestsPlan simulated = plan;
  simulated.warmup = 1;  // nothing changes after the first
  const std::vector<NcclTestsLoop> loops = simulated_loops(plan);
  const Program program = program_of(simulated, loops);
  if (const Diagnostics problems = check_fits(program, machine); !problems.empty()) {
    refuse(problems);
  }
  if (const Diagnostics problems = refused_collectives(program, machine); !problems.empty()) {
    refuse({problems.front()});
  }
  const Timeline timeline = simulate(program, machine, plan.fidelity);
  if (timeline.outcome.kind != Outcome::Kind::Completed) {
    throw std::runtime_error{fmt::format("{}", fmt::join(timeline.outcome.explanation, "\n"))};
  }
  const std::vector<Measured> measured = read_off(plan, program, loops, timeline);
  const double iterations =
      plan.blocking == 3  // each has a region of its own
          ? 1
          : static_cast<double>(NcclTestsLoop{plan.iterations, plan.graph_launches}.total());
  std::vector<NcclTestsRow> rows;
  for (std::size_t i = 0; i < plan.sizes.size(); ++i) {
    const Measured* const first = &measured[i * loops.size()];
    std::vector<double> times;
    for (std::size_t k = 0; k < loops.size(); ++k) times.push_back(first[k].total_us);
    const double time = plan.blocking == 3 ? times.front() : whole_time(plan, loops, times);
    NcclTestsRow row{plan.sizes[i], time / iterations, 0, 0, {}, {}, 0, {}};
    if (const SpanDetail* detail = first->detail) {
      row.algorithm = detail->algorithm;
      row.protocol = detail->protocol;
      row.channels = detail->channels;
    }
    row.low_us = row.time_us * first->low_us / first->total_us;
    row.high_us = row.time_us * first->high_us / first->total_us;
    if (const auto width = width_of(machine, plan, size_class(row.size.bytes))) {
      set_band(row, machine.get(*width).value, plan);
    }
    rows.push_back(std::move(row));
  }
  rows.front().rests_on = rests_on(timeline, machine) + bands_text(machine, plan);
  return rows;
}

std::vector<std::vector<NcclTestsRow>> predict_nccl_tests(const std::vector<NcclTestsPlan>& plans,
                                                          const Machine& machine) {
  std::vector<Job> jobs;
  for (const NcclTestsPlan& plan : plans) {
    jobs.emplace_back([&plan, &machine] { return encode(predict_nccl_tests(plan, machine)); });
  }
  const auto results = run_in_children(jobs);
  std::vector<std::vector<NcclTestsRow>> rows;
  for (std::size_t i = 0; i < plans.size(); ++i) rows.push_back(decode(plans[i], results[i]));
  return rows;
}

}  // namespace foretrace
