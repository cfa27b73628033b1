#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/cost/products/choice.h"
#include "models/machine/machine.h"
#include "scenarios/command_line/command.h"
#include "scenarios/text/diagnostic.h"
#include "scenarios/text/print.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

using products::Arithmetic;
using products::Choice;
using products::Contents;
using products::Family;
using products::Shape;
using products::Speeds;
using products::Times;

struct Options {
  std::string kernel;
  std::string sizes;
  std::string type = "float32";
  std::string machine = "h200-nvswitch-8";
  std::vector<std::string> with;
  std::string transposes = "NN";
  std::int64_t batch = 1;
  bool accumulates = false;
};

/// "4096x4096x64", as m, n and k.
void read_sizes(const std::string& text, Shape& shape) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::int64_t* size : {&shape.m, &shape.n, &shape.k}) {
    if (size != &shape.m && at != end && *at++ != 'x') at = nullptr;
    const auto read = at == nullptr ? std::from_chars_result{end, std::errc::invalid_argument}
                                    : std::from_chars(at, end, *size);
    constexpr std::int64_t kMost = 1'000'000'000;
    if (read.ec != std::errc{} || *size < 1 || *size > kMost) {
      throw UsageError{
          fmt::format("'{}' is not the size of a product\n  hint: m, n and k, as in "
                      "4096x4096x1024",
                      text)};
    }
    at = read.ptr;
  }
  if (at != end) {
    throw UsageError{fmt::format("'{}': m, n and k, and nothing behind them", text)};
  }
}

Shape read_shape(const Options& options) {
  static const std::vector<std::pair<std::string, Arithmetic>> kTypes{
      {"float32", Arithmetic::Float32},
      {"float16", Arithmetic::Half},
      {"bfloat16", Arithmetic::Half},
      {"tf32", Arithmetic::Tf32},
      {"float64", Arithmetic::Float64}};
  Shape shape;
  read_sizes(options.sizes, shape);
  std::vector<std::string> known;
  bool found = false;
  for (const auto& [name, arithmetic] : kTypes) {
    known.push_back(name);
    if (name == options.type) {
      shape.arithmetic = arithmetic;
      found = true;
    }
  }
  if (!found) {
    const std::string hint = suggest(options.type, known);
    throw UsageError{
        fmt::format("unknown type '{}'{}", options.type, hint.empty() ? "" : "\n  hint: " + hint)};
  }
  constexpr double kMostElements = 1e15;  // far beyond any memory
  const auto size = [](std::int64_t value) { return static_cast<double>(value); };
  if (size(shape.m) * size(shape.n) * size(options.batch) > kMostElements ||
      size(shape.k) * size(std::max(shape.m, shape.n)) * size(options.batch) > kMostElements) {
    throw UsageError{
        fmt::format("{} in a batch of {}: more than 10^15 elements", options.sizes, options.batch)};
  }
  shape.brain = options.type == "bfloat16";
  shape.transposes_a = options.transposes[0] == 'T';
  shape.transposes_b = options.transposes[1] == 'T';
  shape.batch = options.batch;
  shape.accumulates = options.accumulates;
  return shape;
}

double us(double seconds) { return seconds * 1e6; }

std::string limit_of(const Times& times) {
  const double sms = times.arithmetic + times.operands + times.results;
  if (times.start + times.split > std::max(sms, times.memory)) return "its start";
  if (times.memory > sms) return "memory";
  return times.arithmetic + times.operands > times.results ? "the SMs" : "the results' way out";
}

std::string choice_line(const Shape& shape, const Choice& choice, const Speeds& speeds) {
  const Times times = time_of(shape, choice.plan, speeds);
  const std::int64_t resident = std::max<std::int64_t>(1, choice.plan.resident);
  const std::string split = choice.plan.split > 1
                                ? fmt::format(", k in {} parts{}", choice.plan.split,
                                              choice.plan.inside ? " that its blocks add" : "")
                                : "";
  const std::string each = resident > 1 ? fmt::format(", {} on an SM", resident) : "";
  const auto at_once = static_cast<double>(times.waves * resident) * speeds.sms;
  return fmt::format("  {:3.0f} %  tile {}x{}{}: {} tiles{}, {} wave{} ({:.0f} % full){}\n",
                     choice.chance * 100, choice.plan.tile_m, choice.plan.tile_n,
                     choice.plan.cooperative ? "" : ", one for each warp group", times.tiles, each,
                     times.waves, times.waves == 1 ? "" : "s",
                     static_cast<double>(times.tiles) / at_once * 100, split);
}

void print_times(Reading& read, const Shape& shape, const std::vector<Choice>& choices,
                 const Speeds& speeds) {
  const double rested = mean_time(shape, choices, speeds, 1, false);
  const Times times = time_of(shape, choices.front().plan, speeds);
  print_out("\nparts of {:.2f} us at the rested clock, of the first of these\n", us(times.total));
  if (const double takes = choices.front().plan.takes; takes != 1) {
    print_out("  {:.2f} times what the formula says, as was learned of such kernels\n", takes);
  }
  print_out("  start {:.2f}, arithmetic {:.2f}, operands {:.2f}, results {:.2f}", us(times.start),
            us(times.arithmetic), us(times.operands), us(times.results));
  if (times.split > 0) print_out(", sum of the parts {:.2f}", us(times.split));
  print_out("; beside them memory {:.2f}\n  limited by {}\n", us(times.memory), limit_of(times));
  print_out("\n{:10} {:>12} {:>12} {:>10} {:>12}\n", "contents", "state", "time", "clock",
            "TFLOP/s");
  constexpr std::array kContents{std::pair{Contents::Zeros, "zeros"},
                                 std::pair{Contents::Random, "random"},
                                 std::pair{Contents::Normal, "normal"}};
  for (const auto& [contents, name] : kContents) {
    if (contents == Contents::Normal && !read.has(Param::ProductsNormalPower)) continue;
    const double lost = lost_clock(read, shape, rested, speeds, contents);
    for (const bool sustained : {false, true}) {
      const double clock = sustained ? 1 - lost : 1;
      const double seconds = mean_time(shape, choices, speeds, clock, false);
      print_out("{:10} {:>12} {:>9.2f} us {:>8.0f} % {:>12.1f}\n", name,
                sustained ? "sustained" : "rested", us(seconds), clock * 100,
                flops(shape) / seconds * 1e-12);
    }
  }
}

int run(const Options& options) {
  if (options.kernel != "gemm") {
    throw UsageError{fmt::format("unknown kernel '{}'\n  hint: gemm", options.kernel)};
  }
  const Shape shape = read_shape(options);
  const Machine machine = changed_machine(options.machine, options.with);
  const Family family = family_of(shape);
  if (!has_speeds(machine, family)) {
    throw UsageError{fmt::format(
        "{} has no measured products: its products are tiles at gemm.*'s rates, and nothing more "
        "is known\n  hint: foretrace-hw products, then foretrace fit-products",
        machine.name)};
  }
  Reading read{machine};
  const Speeds speeds = read_speeds(read, family);
  const std::vector<Choice> choices = likely_choices(shape, speeds);
  print_out("{} {}x{}x{} {}{} on {}: kernel {}, {:.0f} SMs\n", options.type, shape.m, shape.n,
            shape.k, options.transposes, shape.batch > 1 ? fmt::format(" x {}", shape.batch) : "",
            machine.name, kernel_name(family), speeds.sms);
  if (family == Family::HalfOdd || family == Family::BrainOdd || family == Family::HalfPairs ||
      family == Family::Tf32Odd) {
    print_out("  a leading dimension is no multiple of 16 bytes: no TMA, an older kernel\n");
  }
  print_out("\nlikely choices\n");
  for (const Choice& choice : choices) print_out("{}", choice_line(shape, choice, speeds));
  print_times(read, shape, choices, speeds);
  return 0;
}

}  // namespace

void add_explain_kernel_command(CLI::App& app, int& exit_code) {
  CLI::App* command = &add_subcommand(
      app, "explain-kernel", "What cuBLAS would choose for a product, and what its time is made of",
      "foretrace explain-kernel gemm 4096x4096x1024 --machine h200-nvswitch-8");
  const auto options = std::make_shared<Options>();
  command->add_option("kernel", options->kernel, "gemm")->required();
  command->add_option("sizes", options->sizes, "m, n and k: 4096x4096x1024")->required();
  command
      ->add_option("--type", options->type, "float32 (TF32 off), tf32, float16, bfloat16, float64")
      ->capture_default_str();
  command->add_option("--machine", options->machine, "a name of foretrace list machines, or a file")
      ->capture_default_str();
  add_with_option(*command, options->with);
  command->add_option("--transposes", options->transposes, "of a and b, column-major")
      ->check(CLI::IsMember({"NN", "TN", "NT", "TT"}))
      ->capture_default_str();
  command->add_option("--batch", options->batch, "so many such products at once")
      ->check(CLI::Range(1, 1 << 24).description(""))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--beta", options->accumulates, "c is added to");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace foretrace
