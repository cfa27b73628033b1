#include "models/nccl_explain_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "models/machine.h"
#include "models/nccl_explain.h"
#include "models/nccl_machine.h"
#include "scenarios/command.h"
#include "scenarios/diagnostic.h"
#include "scenarios/quantity.h"

namespace foretrace {
namespace {

struct Options {
  std::string op;
  std::string size;
  std::string machine = "h200-nvswitch-8";
  std::uint32_t ranks = 0;  ///< 0: all GPUs
  std::uint32_t nodes = 0;  ///< 0: all nodes
  std::string type = "float32";
  std::string red_op = "sum";
  std::vector<std::string> environment;
  std::string version;  ///< empty: the machine's
  std::string format = "text";
};

/// `word` in a table of names, or an error that names the nearest.
template <class Value>
Value look_up(const std::vector<std::pair<std::string, Value>>& table, const std::string& word,
              std::string_view what) {
  std::vector<std::string> known;
  for (const auto& [name, value] : table) {
    if (name == word) return value;
    known.push_back(name);
  }
  throw UsageError{fmt::format("unknown {} '{}'\n  hint: {}", what, word, suggest(word, known))};
}

DataType parse_type(const std::string& word) {
  using enum DataType;
  static const std::vector<std::pair<std::string, DataType>> kTypes{
      {"float32", Float32}, {"float16", Float16}, {"bfloat16", BFloat16}, {"float64", Float64},
      {"int8", Int8},       {"int32", Int32},     {"int64", Int64}};
  return look_up(kTypes, word, "type");
}

RedOp parse_red_op(const std::string& word) {
  using enum RedOp;
  static const std::vector<std::pair<std::string, RedOp>> kOps{
      {"sum", Sum}, {"prod", Prod}, {"min", Min}, {"max", Max}, {"avg", Avg}};
  return look_up(kOps, word, "reduction");
}

/// As scenarios write sizes, and as nccl-tests does: 64MiB, 64M, 1024.
Bytes parse_size(const std::string& text) {
  std::string written = text;
  if (!written.empty() && std::string_view{"KMG"}.find(written.back()) != std::string_view::npos) {
    written += "iB";
  }
  if (!written.empty() && written.find_first_not_of("0123456789") == std::string::npos) {
    written += "B";
  }
  const NameLookup no_names = [](std::string_view name) -> Parsed<Quantity> {
    return tl::unexpected{QuantityError{fmt::format("'{}' means nothing here", name), {}, 0}};
  };
  const Parsed<Quantity> parsed = parse_quantity(written, no_names);
  if (!parsed) throw UsageError{fmt::format("size {}: {}", text, parsed.error().message)};
  const double value = parsed->unit == kSize ? parsed->constant.convert_to<double>() : -1;
  if (value < 1 || value > 0x1p50 ||
      value != static_cast<double>(static_cast<std::uint64_t>(value))) {
    throw UsageError{fmt::format("'{}' is not a size\n  hint: 64MiB, 64M or 67108864", text)};
  }
  return {static_cast<std::uint64_t>(value)};
}

/// NCCL passes over names it does not know; a user who gives one here has mistyped it.
void check_names(const std::vector<std::string>& environment) {
  const std::vector<std::string> known = nccl_setting_names();
  for (const std::string& entry : environment) {
    const std::string name = entry.substr(0, entry.find('='));
    if (entry.find('=') != std::string::npos && std::ranges::find(known, name) == known.end()) {
      throw UsageError{fmt::format("{} is no setting that changes NCCL's choice\n  hint: {}", name,
                                   suggest(name, known))};
    }
  }
}

NcclExplanation explain(const Options& options) {
  NcclQuestion question;
  question.op = options.op;
  question.kind = look_up(nccl_operations(), options.op, "operation");
  question.size = parse_size(options.size);
  question.type = parse_type(options.type);
  question.type_name = options.type;
  question.red_op = parse_red_op(options.red_op);
  question.red_op_name = options.red_op;
  question.environment = options.environment;
  check_names(options.environment);
  const NcclSettings settings{options.environment};
  Machine machine = load_machine(options.machine);
  if (!options.version.empty()) machine.nccl_version = options.version;
  const std::uint32_t nodes = options.nodes == 0 ? machine.nodes : options.nodes;
  const std::uint32_t ranks = options.ranks == 0 ? nodes * machine.gpus_per_node : options.ranks;
  return nccl_explain(question, nccl_tuning_of(machine, ranks, nodes, settings));
}

}  // namespace

void add_nccl_explain_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App& command = add_subcommand(
      app, "nccl-explain", "What NCCL does with an operation: candidates, prices, why one won",
      "foretrace nccl-explain all_reduce 64MiB --env NCCL_NVLS_ENABLE=0");
  command.add_option("op", options->op, "all_reduce, ..., send_recv: as scenarios name them")
      ->required();
  command.add_option("size", options->size, "As nccl-tests counts it: 64MiB, 64M, 67108864")
      ->required();
  command.add_option("--machine", options->machine, "From `foretrace list machines`, or a file")
      ->capture_default_str();
  command.add_option("--ranks", options->ranks, "Default: all GPUs of the nodes")
      ->check(CLI::PositiveNumber);
  command.add_option("--nodes", options->nodes, "Over which the ranks are spread; default: all")
      ->check(CLI::PositiveNumber);
  command.add_option("--type", options->type, "float32, bfloat16, ...")->capture_default_str();
  command.add_option("--op", options->red_op, "sum, prod, min, max or avg")->capture_default_str();
  command.add_option("--env", options->environment, "A setting, NCCL_PROTO=LL128; repeatable")
      ->allow_extra_args(false);
  command.add_option("--nccl-version", options->version, "2.27 to 2.30; default: the machine's");
  command.add_option("--format", options->format, "text, json or csv")
      ->check(CLI::IsMember({"text", "json", "csv"}))
      ->capture_default_str();
  command.callback([options, &exit_code] {
    const NcclExplanation explanation = explain(*options);
    const auto render = options->format == "json"  ? nccl_explain_json
                        : options->format == "csv" ? nccl_explain_csv
                                                   : nccl_explain_text;
    fmt::print("{}", render(explanation));
    exit_code = kDone;
  });
}

}  // namespace foretrace
