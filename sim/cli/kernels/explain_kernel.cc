#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "models/cost/products/choice.h"
#include "models/machine/machine.h"
#include "reports/table/text_table.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/print.h"
#include "scenarios/program/product_type.h"
#include "sim/cli/commands.h"
#include "sim/cli/kernels/explain_attention.h"
#include "sim/cli/kernels/explain_memory_kernel.h"
#include "sim/cli/kernels/kernel_terms.h"
#include "sim/cli/kernels/product_types.h"
#include "sim/cli/options.h"
#include "sim/machine_check.h"

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
  std::string machine = kDefaultMachine;
  std::vector<std::string> with, without;
  std::uint32_t arrays = 2;
  bool cold = false;
  std::string transposes = "NN";
  std::int64_t batch = 1;
  std::uint32_t heads = 32, kv_heads = 0, width = 128;
  bool says_type = false;
  bool accumulates = false;
  OutputOptions output;
};

Shape read_shape(const Options& options, const Machine& machine) {
  const ProductType& type = product_type(options.type);
  Shape shape;
  read_product_sizes(options.sizes, shape);
  const bool tf32 = type.arithmetic == Arithmetic::Tf32;
  if (const auto cannot = why_no_products(machine, type.type, type.scales, tf32)) {
    throw UsageError{fmt::format("{}\n  hint: {}", cannot->why, cannot->hint)};
  }
  shape.arithmetic = type.arithmetic;
  if (is_narrow(type.type)) shape.operand_bytes = bytes_each(type.type, type.scales);
  constexpr double kMostElements = 1e15;  // far beyond any memory
  const auto size = [](std::int64_t value) { return static_cast<double>(value); };
  if (size(shape.m) * size(shape.n) * size(options.batch) > kMostElements ||
      size(shape.k) * size(std::max(shape.m, shape.n)) * size(options.batch) > kMostElements) {
    throw UsageError{
        fmt::format("{} in a batch of {}: more than 10^15 elements", options.sizes, options.batch)};
  }
  shape.is_bf16 = type.type == DataType::BFloat16;
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

/// The time with one kind of contents, at a clock that nothing or the power limit has lowered.
struct ClockRow {
  const char* contents;
  bool sustained;
  double clock;  ///< of the rested one
  double seconds;
  double flop_rate;
};

std::vector<ClockRow> clock_rows(Reading& read, const Shape& shape,
                                 const std::vector<Choice>& choices, const Speeds& speeds) {
  const double rested = mean_time(shape, choices, speeds, 1, false);
  constexpr std::array kContents{std::pair{Contents::Zeros, "zeros"},
                                 std::pair{Contents::Random, "random"},
                                 std::pair{Contents::Normal, "normal"}};
  std::vector<ClockRow> rows;
  for (const auto& [contents, name] : kContents) {
    if (contents == Contents::Normal && !read.has(Param::ProductsNormalPower)) continue;
    const bool loses = read.has(Param::ProductsClockSlope);
    const double lost = loses ? lost_clock(read, shape, rested, speeds, contents) : 0;
    for (const bool sustained : {false, true}) {
      const double clock = sustained ? 1 - lost : 1;
      const double seconds = mean_time(shape, choices, speeds, clock, false);
      rows.push_back({name, sustained, clock, seconds, flops(shape) / seconds});
    }
  }
  return rows;
}

/// What was asked, and the answer, before it is text.
struct Explained {
  const Options& options;
  const Machine& machine;
  Shape shape;
  Family family;
  Speeds speeds;
  std::vector<Choice> choices;  ///< likeliest first
  std::vector<ClockRow> rows;
  std::vector<TermShare> terms;
};

std::string parts_text(const Explained& all) {
  const Times times = time_of(all.shape, all.choices.front().plan, all.speeds);
  std::string text = fmt::format(
      "\nparts of {:.2f} us at the rested clock, of the first of these\n", us(times.total));
  if (const double residual = all.choices.front().plan.residual; residual != 1) {
    text += fmt::format("  {:.2f} times what the formula says, as was learned of such kernels\n",
                        residual);
  }
  text += fmt::format("  start {:.2f}, arithmetic {:.2f}, operands {:.2f}, results {:.2f}",
                      us(times.start), us(times.arithmetic), us(times.operands), us(times.results));
  if (times.split > 0) text += fmt::format(", sum of the parts {:.2f}", us(times.split));
  return text + fmt::format("; beside them memory {:.2f}\n  limited by {}\n", us(times.memory),
                            limit_of(times));
}

bool is_unaligned(Family family) {
  return family == Family::HalfOdd || family == Family::Bf16Odd || family == Family::HalfPairs ||
         family == Family::Tf32Odd;
}

std::string text_of(const Explained& all) {
  const Shape& shape = all.shape;
  std::string text = fmt::format(
      "{} {}x{}x{} {}{} on {}: kernel {}, {:.0f} SMs\n", all.options.type, shape.m, shape.n,
      shape.k, all.options.transposes, shape.batch > 1 ? fmt::format(" x {}", shape.batch) : "",
      all.machine.name, kernel_name(all.family), all.speeds.sms);
  if (is_unaligned(all.family)) {
    text += "  a leading dimension is no multiple of 16 bytes: no TMA, an older kernel\n";
  }
  text += "\nlikely choices\n";
  for (const Choice& choice : all.choices) text += choice_line(shape, choice, all.speeds);
  text += parts_text(all);
  text += fmt::format("\n{:10} {:>12} {:>12} {:>10} {:>12}\n", "contents", "state", "time", "clock",
                      "TFLOP/s");
  for (const ClockRow& row : all.rows) {
    text += fmt::format("{:10} {:>12} {:>9.2f} us {:>8.0f} % {:>12.1f}\n", row.contents,
                        row.sustained ? "sustained" : "rested", us(row.seconds), row.clock * 100,
                        row.flop_rate * 1e-12);
  }
  return text + term_text(all.terms);
}

std::string csv_of(const Explained& all) {
  TextTable table;
  for (const char* const name : {"contents", "state", "seconds", "clock", "flop_per_second"}) {
    table.column(name, TextTable::Align::Left);
  }
  for (const ClockRow& row : all.rows) {
    table.row({row.contents, row.sustained ? "sustained" : "rested",
               fmt::format("{:.9g}", row.seconds), fmt::format("{:.6g}", row.clock),
               fmt::format("{:.6g}", row.flop_rate)});
  }
  return table.csv();
}

std::string json_of(const Explained& all) {
  using Json = nlohmann::ordered_json;
  Json choices = Json::array(), times = Json::array(), terms = Json::array();
  for (const TermShare& share : all.terms) {
    terms.push_back({{"term", info(share.term).id}, {"seconds", share.seconds}});
  }
  for (const Choice& choice : all.choices) {
    const Times parts = time_of(all.shape, choice.plan, all.speeds);
    choices.push_back({{"chance", choice.chance},
                       {"tile", {choice.plan.tile_m, choice.plan.tile_n}},
                       {"tiles", parts.tiles},
                       {"waves", parts.waves},
                       {"split_k", choice.plan.split},
                       {"seconds", parts.total},
                       {"start", parts.start},
                       {"arithmetic", parts.arithmetic},
                       {"operands", parts.operands},
                       {"results", parts.results},
                       {"split", parts.split},
                       {"memory", parts.memory},
                       {"limited_by", limit_of(parts)}});
  }
  for (const ClockRow& row : all.rows) {
    times.push_back({{"contents", row.contents},
                     {"state", row.sustained ? "sustained" : "rested"},
                     {"seconds", row.seconds},
                     {"clock", row.clock},
                     {"flop_per_second", row.flop_rate}});
  }
  const Json json{{"schema_version", 1},
                  {"kind", "explain-kernel"},
                  {"machine", all.machine.name},
                  {"datatype", all.options.type},
                  {"sizes", {all.shape.m, all.shape.n, all.shape.k}},
                  {"transposes", all.options.transposes},
                  {"batch", all.shape.batch},
                  {"kernel", kernel_name(all.family)},
                  {"sms", all.speeds.sms},
                  {"choices", choices},
                  {"times", times},
                  {"terms", terms}};
  return json.dump(2) + "\n";
}

/// The product as a kernel of a stream, whose contents are random.
KernelTime kernel_time(const Options& options, const Shape& shape) {
  const ProductType& type = product_type(options.type);
  cost::Product product{.type = type.type,
                        .tf32 = type.arithmetic == Arithmetic::Tf32,
                        .scales = type.scales,
                        .result = result_of(type.type),
                        .m = shape.m,
                        .n = shape.n,
                        .k = shape.k,
                        .transposes_a = shape.transposes_a,
                        .transposes_b = shape.transposes_b,
                        .batch = shape.batch,
                        .accumulates = shape.accumulates};
  if (options.cold) product.cached_eighths = 0;
  return [product](Reading& read) { return cost::gemm_cost(read, product); };
}

int run_memory_kernel(const Options& options) {
  std::vector<std::string> known = memory_kernel_names();
  if (std::ranges::find(known, options.kernel) == known.end()) {
    known.emplace_back("gemm");
    for (const std::string& name : attention_names()) known.push_back(name);
    throw UsageError{
        fmt::format("unknown kernel '{}'\n  hint: {}", options.kernel, fmt::join(known, ", "))};
  }
  if (options.output.format == OutputFormat::Csv) {
    throw UsageError{"explain-kernel: csv is a product's rows; text and json are of all kernels"};
  }
  Machine machine = changed_machine(options.machine, options.with);
  leave_out_terms(machine, options.without);
  const bool json = options.output.format == OutputFormat::Json;
  emit(options.output,
       explain_memory_kernel(machine, {options.kernel, options.sizes, options.arrays, options.cold},
                             json));
  return 0;
}

int run_attention(const Options& options) {
  if (options.output.format == OutputFormat::Csv) {
    throw UsageError{"explain-kernel: csv is a product's rows; text and json are of all kernels"};
  }
  const bool is_half =
      options.type == "float16" || options.type == "bfloat16" || options.type == "half";
  if (options.says_type && !is_half) {
    throw UsageError{fmt::format(
        "attention in '{}' is not predicted\n  hint: -d bfloat16 or float16", options.type)};
  }
  Machine machine = changed_machine(options.machine, options.with);
  leave_out_terms(machine, options.without);
  const AttentionKernel kernel{.name = options.kernel,
                               .tokens = options.sizes,
                               .batch = options.batch,
                               .heads = options.heads,
                               .kv_heads = options.kv_heads,
                               .width = options.width};
  emit(options.output,
       explain_attention(machine, kernel, options.output.format == OutputFormat::Json));
  return 0;
}

int run(const Options& options) {
  if (std::ranges::count(attention_names(), options.kernel) > 0) return run_attention(options);
  if (options.kernel != "gemm") return run_memory_kernel(options);
  Machine machine = changed_machine(options.machine, options.with);
  leave_out_terms(machine, options.without);
  const Shape shape = read_shape(options, machine);
  Reading read{machine};
  const Speeds speeds = read_speeds(read, shape);
  Explained all{options, machine, shape, speeds.family, speeds, likely_choices(shape, speeds),
                {},      {}};
  all.rows = clock_rows(read, shape, all.choices, speeds);
  if (shape.arithmetic != Arithmetic::Tf32) {
    all.terms = term_shares(machine, kernel_time(options, shape));
  }
  emit(options.output, options.output.format == OutputFormat::Json  ? json_of(all)
                       : options.output.format == OutputFormat::Csv ? csv_of(all)
                                                                    : text_of(all));
  return 0;
}

}  // namespace

void add_explain_kernel_command(CLI::App& app, int& exit_code) {
  CLI::App* command = &add_subcommand(
      app, "explain-kernel",
      "What a kernel's time is made of, by parameters and terms; what cuBLAS would choose",
      "foretrace explain-kernel gemm 4096x4096x1024 --machine h200-nvswitch-8");
  const auto options = std::make_shared<Options>();
  command
      ->add_option(
          "kernel", options->kernel,
          "gemm, attention_prefill, attention_decode, elementwise, reduction, memset, copy")
      ->required();
  command
      ->add_option("sizes", options->sizes,
                   "gemm: m, n and k, 4096x4096x1024; attention: tokens of a sequence, or in the "
                   "cache, 8192; else an array's size, 4MiB")
      ->required();
  CLI::Option* const type =
      command
          ->add_option("-d,--datatype", options->type,
                       "gemm: float32 (TF32 off), tf32, float16, bfloat16, float64, "
                       "int8, float8_e4m3, float8_e5m2, float8_row, "
                       "float8_block, mxfp8, mxfp4, nvfp4")
          ->capture_default_str();
  add_other_name(*command, "--type", type, options->type);
  add_machine_option(*command, options->machine);
  add_with_option(*command, options->with);
  add_host_option(*command, options->with);
  add_without_option(*command, options->without);
  command->add_option("--arrays", options->arrays, "elementwise: the last is written, others read")
      ->check(CLI::Range(1, 3).description(""))
      ->capture_default_str();
  command->add_flag("--cold", options->cold, "The level-2 cache has nothing of its data");
  command->add_option("--transposes", options->transposes, "of a and b, column-major")
      ->check(CLI::IsMember({"NN", "TN", "NT", "TT"}))
      ->capture_default_str();
  command
      ->add_option("--batch", options->batch, "so many such products at once; attention: sequences")
      ->check(CLI::Range(1, 1 << 24).description(""))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--beta", options->accumulates, "c is added to");
  command->add_option("--heads", options->heads, "attention: heads of queries")
      ->check(CLI::Range(1, 1024).description(""))
      ->capture_default_str();
  command
      ->add_option("--kv-heads", options->kv_heads, "attention: heads of keys (default: --heads)")
      ->check(CLI::Range(1, 1024).description(""));
  command->add_option("--width", options->width, "attention: of a head")
      ->check(CLI::Range(1, 1024).description(""))
      ->capture_default_str();
  add_output_options(*command, options->output);
  command->callback([options, type, &exit_code] {
    options->says_type = type->count() > 0;
    exit_code = run(*options);
  });
}

}  // namespace foretrace
