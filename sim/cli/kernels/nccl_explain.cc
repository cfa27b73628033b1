#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/machine/machine.h"
#include "models/machine/parts/composition.h"
#include "models/machine/parts/limit_names.h"
#include "models/nccl/explain/explain.h"
#include "models/nccl/explain/explain_time.h"
#include "models/nccl/time/cost.h"
#include "models/nccl/topology/machine.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/values/quantity.h"
#include "scenarios/program/environment.h"
#include "sim/cli/commands.h"
#include "sim/cli/kernels/nccl_environment.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

struct NcclExplainOptions {
  std::vector<std::string> calls;  ///< operation and size by turns
  std::string machine = kDefaultMachine;
  std::vector<std::string> with;
  std::optional<std::uint32_t> ranks;  ///< all GPUs
  std::optional<std::uint32_t> nodes;  ///< all nodes
  std::string type = "float32";
  std::string red_op = "sum";
  bool registered = false;
  std::vector<std::string> environment;
  std::string version;  ///< empty: the machine's
  OutputOptions output;
};

std::string hinted(const std::string& hint) { return hint.empty() ? "" : "\n  hint: " + hint; }

/// `word` in a table of names, or an error that names the nearest.
template <class Value>
Value look_up(const std::vector<std::pair<std::string, Value>>& table, const std::string& word,
              std::string_view what) {
  std::vector<std::string> known;
  for (const auto& [name, value] : table) {
    if (name == word) return value;
    known.push_back(name);
  }
  throw UsageError{fmt::format("unknown {} '{}'{}", what, word, hinted(suggest(word, known)))};
}

DataType parse_type(const std::string& word) {
  using enum DataType;
  static const std::vector<std::pair<std::string, DataType>> kTypes{
      {"float32", Float32}, {"float16", Float16}, {"bfloat16", BFloat16}, {"float64", Float64},
      {"int8", Int8},       {"int32", Int32},     {"int64", Int64},       {"float", Float32},
      {"half", Float16},    {"double", Float64}};  // as nccl-tests has them
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
  const Parsed<Quantity> parsed = parse_constant(written);
  if (!parsed) throw UsageError{fmt::format("size {}: {}", text, parsed.error().message)};
  const double value = parsed->unit == kSize ? parsed->constant.to_double() : -1;
  if (value < 1 || value > 0x1p50 ||
      value != static_cast<double>(static_cast<std::uint64_t>(value))) {
    throw UsageError{fmt::format("'{}' is not a size\n  hint: 64MiB, 64M or 67108864", text)};
  }
  return {static_cast<std::uint64_t>(value)};
}

/// As scenarios name it; "alltoall" and "sendrecv", as nccl-tests does, are taken too.
std::string operation_name(const std::string& word) {
  if (word == "alltoall") return "all_to_all";
  return word == "sendrecv" ? "send_recv" : word;
}

std::vector<nccl::Question> questions_of(const NcclExplainOptions& options) {
  const std::size_t words = options.calls.size();
  if (words % 2 != 0) {
    throw UsageError{fmt::format("{}: a size is needed\n  hint: {} 64MiB", options.calls.back(),
                                 options.calls.back())};
  }
  std::vector<nccl::Question> questions;
  for (std::size_t i = 0; i < words; i += 2) {
    nccl::Question& question = questions.emplace_back();
    question.op = operation_name(options.calls[i]);
    question.kind = look_up(nccl::operations(), question.op, "operation");
    question.size = parse_size(options.calls[i + 1]);
    question.type = parse_type(options.type);
    question.type_name = options.type;
    question.red_op = parse_red_op(options.red_op);
    question.red_op_name = options.red_op;
    question.registered = options.registered;
  }
  return questions;
}

Machine machine_of(const NcclExplainOptions& options) {
  Machine machine = changed_machine(options.machine, options.with);
  if (!options.version.empty()) machine.nccl_version = options.version;
  return machine;
}

nccl::Tuning tune(const NcclExplainOptions& options, const Machine& machine, nccl::Given& given) {
  const auto environment = nccl_environment(options.environment);
  if (options.nodes == 0u) throw UsageError{"--nodes 0: an operation needs a node"};
  if (options.ranks == 0u) throw UsageError{"--processes 0: an operation needs a rank"};
  const std::uint32_t filled = nodes_for(options.ranks.value_or(1), machine);
  const std::uint32_t all = machine.nodes == kAnyNodes ? 1 : machine.nodes;
  const std::uint32_t nodes = options.nodes.value_or(options.ranks ? filled : all);
  const std::uint32_t ranks = options.ranks.value_or(nodes * machine.gpus_per_node);
  nccl::Tuning tuning = nccl::tuning_for(machine, ranks, nodes, environment);
  given.environment = options.environment;
  given.link = link_name(machine);
  given.gpu = machine.gpu_name.starts_with("AMD") ? nccl::gpu_kind(machine.gpu_name) : "";
  given.no_nvls = machine.has(Param::NcclNvls) && machine.get(Param::NcclNvls).value == 0 &&
                  !environment.contains("NCCL_NVLS_ENABLE");
  return tuning;
}

template <class Explanation>
std::string explanation_text(const Explanation& explanation, OutputFormat format) {
  if (format == OutputFormat::Json) return nccl::explain_json(explanation);
  return format == OutputFormat::Csv ? nccl::explain_csv(explanation)
                                     : nccl::explain_text(explanation);
}

std::string explain(const NcclExplainOptions& options) {
  const std::vector<nccl::Question> questions = questions_of(options);
  nccl::Given given;
  const Machine machine = machine_of(options);
  nccl::Tuning tuning = tune(options, machine, given);
  if (questions.size() == 1) {
    nccl::Explanation explanation = nccl::explain(questions.front(), std::move(tuning), given);
    // The choice needs no times; a machine file may be about it alone.
    if (explanation.tuning.ranks() > 1 && machine.has(Param::NcclPortShare)) {
      explanation.time = nccl::explain_time(machine, questions.front(), explanation.tuning);
    }
    return explanation_text(explanation, options.output.format);
  }
  return explanation_text(nccl::explain_group(questions, std::move(tuning), given),
                          options.output.format);
}

}  // namespace

void add_nccl_explain_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<NcclExplainOptions>();
  CLI::App& command = add_subcommand(
      app, "nccl-explain", "What NCCL does with an operation: candidates, prices, why one won",
      "foretrace nccl-explain all_reduce 64MiB\n"
      "  foretrace nccl-explain all_reduce 64MiB all_reduce 4KiB send_recv 1MiB");
  command
      .add_option("calls", options->calls,
                  "Operation and size: all_reduce, ..., send_recv; 64MiB, 64M, 67108864 as "
                  "nccl-tests counts it. Several are one group")
      ->type_name(
          "{all_reduce,all_gather,reduce_scatter,broadcast,reduce,all_to_all,gather,scatter,"
          "send_recv}")
      ->option_text("OP SIZE ...")
      ->required();
  add_machine_option(command, options->machine);
  add_with_option(command, options->with);
  add_host_option(command, options->with);
  CLI::Option* const processes = command.add_option(
      "--processes", options->ranks, "Ranks, of a GPU each; default: all GPUs of the nodes");
  add_other_name(command, "--ranks", processes, options->ranks);
  command.add_option(
      "--nodes", options->nodes,
      "Over which they are spread; default: as few as hold --processes, or the machine file's");
  CLI::Option* const type =
      command.add_option("-d,--datatype", options->type, "float32, bfloat16, ...")
          ->capture_default_str();
  add_other_name(command, "--type", type, options->type);
  command.add_option("--op", options->red_op, "sum, prod, min, max or avg")->capture_default_str();
  command.add_flag(
      "--registered", options->registered,
      "Buffers of ncclMemAlloc that ncclCommRegister or a CUDA graph registered, not in place");
  command.add_option("--env", options->environment, "A setting, NCCL_PROTO=LL128; repeatable")
      ->allow_extra_args(false);
  command.add_option("--nccl-version", options->version, "2.18.3 to 2.30; default: the machine's");
  add_output_options(command, options->output);
  command.callback([options, &exit_code] {
    emit(options->output, explain(*options));
    exit_code = kDone;
  });
}

}  // namespace foretrace
