// What must hold for every program: thousands of random ones, each simulated in a child of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <sstream>

#include "models/machine/machine.h"
#include "reports/compare/order_check.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/read/scenario.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"
#include "tests/properties/program_generator.h"
#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

/// What a child says about one simulation.
struct Simulated {
  Outcome::Kind outcome{};
  std::size_t spans{}, violations{};
  double total_ns{};
  double longest_path_ns{};  ///< of durations as the scenario states them, along the order
  std::pair<double, double> digest;
};

double nominal_ns(const HappensBefore& order, std::uint32_t node) {
  const Op& op = *order.nodes[node].call.op;
  const auto ns = [](const DurationExpr& d) {
    return static_cast<double>(d.expr.constant()) / 1e3;
  };
  if (!order.is_device(node)) {
    const auto* compute = std::get_if<HostCompute>(&op.kind);
    return compute != nullptr ? ns(compute->duration) : 0;
  }
  if (const auto* spin = std::get_if<Spin>(&op.kind)) return ns(spin->duration);
  if (const auto* function = std::get_if<HostFunc>(&op.kind)) return ns(function->duration);
  return 0;
}

double longest_path_ns(const HappensBefore& order) {
  std::vector<std::vector<std::uint32_t>> before(order.nodes.size());
  for (const OrderEdge& edge : order.edges) before[edge.to].push_back(edge.from);
  for (const OrderLane& lane : order.lanes) {
    for (std::size_t i = 1; i < lane.nodes.size(); ++i) {
      before[lane.nodes[i]].push_back(lane.nodes[i - 1]);
    }
  }
  std::vector<double> ends(order.nodes.size());
  double longest = 0;
  for (const std::uint32_t node : order.sequence) {
    double begin = 0;
    for (const std::uint32_t earlier : before[node]) begin = std::max(begin, ends[earlier]);
    ends[node] = begin + nominal_ns(order, node);
    longest = std::max(longest, ends[node]);
  }
  return longest;
}

std::pair<double, double> digest_of(const Timeline& timeline) {
  std::ostringstream bytes;
  write_timeline(timeline, bytes);
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char c : bytes.str()) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return {static_cast<double>(hash >> 32), static_cast<double>(hash & 0xffffffff)};
}

Job job_of(const Program& program, const HappensBefore& order, const Machine& machine) {
  return [&]() -> std::vector<double> {
    const Timeline timeline = simulate(program, machine);
    const OrderCheck check = check_order(program, order, timeline);
    for (const OrderViolation& violation : check.violations) {
      fmt::print(stderr, "{}\n", describe(violation));
    }
    if (timeline.outcome.kind != Outcome::Kind::Completed && order.is_finished) {
      for (const std::string& line : timeline.outcome.explanation) fmt::print(stderr, "{}\n", line);
    }
    std::int64_t total = 0;
    for (const Span& span : timeline.spans) total = std::max(total, span.end_ns);
    const auto [high, low] = digest_of(timeline);
    return {static_cast<double>(timeline.outcome.kind),
            static_cast<double>(check.spans),
            static_cast<double>(check.violations.size()),
            static_cast<double>(total),
            high,
            low};
  };
}

/// A random program, read, with the order it guarantees.
struct Subject {
  std::string text;
  Program program;
  HappensBefore order;
};

Subject random_subject(const ProgramShape& shape) {
  const auto numbers =
      *rc::gen::resize(300, rc::gen::arbitrary<std::vector<std::uint32_t>>()).as("choices");
  Subject subject;
  subject.text = random_program(Choices{numbers}, shape, "random");
  RC_LOG() << subject.text;
  auto read = read_scenario(subject.text, "random.yaml");
  if (!read) RC_FAIL(render(read.error(), subject.text));
  if (!shape.forgets_signal) {
    std::erase_if(read->warnings, [](const Diagnostic& warning) {
      return warning.message.find("recorded nowhere") != std::string::npos;
    });
    if (!read->warnings.empty()) RC_FAIL(render(read->warnings, subject.text));
  }
  subject.program = std::move(read->program);
  return subject;
}

const Machine& any_machine() {
  static const Machine kUnit = unit_machine();
  static const Machine kH200 = load_machine("h200-nvswitch-8");
  return *rc::gen::arbitrary<bool>() ? kUnit : kH200;
}

std::vector<Simulated> simulate_all(const Subject& subject, const std::vector<Machine>& machines) {
  const HappensBefore order = happens_before(subject.program);
  std::vector<Job> jobs;
  for (const Machine& machine : machines) jobs.push_back(job_of(subject.program, order, machine));
  std::vector<Simulated> all;
  for (const auto& numbers : run_in_children(jobs)) {
    Simulated& s = all.emplace_back();
    s.outcome = static_cast<Outcome::Kind>(numbers[0]);
    s.spans = static_cast<std::size_t>(numbers[1]);
    s.violations = static_cast<std::size_t>(numbers[2]);
    s.total_ns = numbers[3];
    s.longest_path_ns = longest_path_ns(order);
    s.digest = {numbers[4], numbers[5]};
  }
  return all;
}

/// Everything that must hold of a program that comes to its end.
void check_everything(const ProgramShape& shape) {
  const Subject subject = random_subject(shape);
  RC_ASSERT(happens_before(subject.program).is_finished);
  RC_ASSERT(happens_before(subject.program, {.mode = OrderMode::Likely}).is_finished);
  const Machine& machine = any_machine();
  const auto results = simulate_all(subject, {machine, machine});
  RC_ASSERT(results[0].outcome == Outcome::Kind::Completed);
  RC_ASSERT(results[0].violations == 0U);
  RC_ASSERT(results[0].total_ns + 1 >= results[0].longest_path_ns);
  RC_ASSERT(results[0].digest == results[1].digest);
  RC_CLASSIFY(results[0].spans >= 20, "20 kernels and copies or more");
}

RC_GTEST_PROP(Simulator, KeepsTheOrderOfEveryProgramAndEndsIt, ()) { check_everything({}); }

RC_GTEST_PROP(Simulator, KeepsTheOrderOfTwoProcessesThatTalk, ()) {
  check_everything({.processes = 2});
}

RC_GTEST_PROP(Simulator, IsNeverSlowedDownByMoreBandwidthWhereNothingCompetes, ()) {
  const Subject subject = random_subject({.one_stream = true});
  const Machine& machine = any_machine();
  std::vector<Machine> machines{machine};
  for (const Param rate : {Param::H2dBandwidth, Param::D2hBandwidth, Param::P2pShare,
                           Param::P2pStagedBandwidth, Param::HbmBandwidth, Param::NvlinkBandwidth,
                           Param::PageableH2dBandwidth, Param::PageableD2hBandwidth}) {
    ParamValue doubled = machine.get(rate);
    doubled.value *= 2;
    machines.emplace_back(machine).set(rate, doubled);
  }
  const std::size_t chosen = *rc::gen::inRange<std::size_t>(1, machines.size());
  const auto results = simulate_all(subject, {machines[0], machines[chosen]});
  RC_ASSERT(results[0].outcome == Outcome::Kind::Completed);
  RC_ASSERT(results[1].total_ns <= results[0].total_ns);
}

RC_GTEST_PROP(Simulator, SaysThatAProgramHangsWhenASignalIsMissing, ()) {
  const Subject subject = random_subject({.forgets_signal = true});
  RC_ASSERT(!happens_before(subject.program).is_finished);
  const auto results = simulate_all(subject, {unit_machine()});
  RC_ASSERT(results[0].outcome == Outcome::Kind::Deadlock);
  RC_ASSERT(results[0].violations == 0U);
}

}  // namespace
}  // namespace foretrace::test
