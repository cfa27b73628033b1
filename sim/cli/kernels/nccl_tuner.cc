#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/machine/machine.h"
#include "models/nccl/explain/tuner.h"
#include "models/nccl/topology/machine.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/program/environment.h"
#include "sim/applications/nccl_tests/op.h"
#include "sim/cli/commands.h"
#include "sim/cli/kernels/nccl_environment.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

struct NcclTunerOptions {
  std::vector<std::string> operations;
  std::string machine = kDefaultMachine;
  std::vector<std::string> with;
  std::optional<std::uint32_t> ranks;  ///< all GPUs of a node
  std::optional<std::uint32_t> nodes;
  std::string first = "1K", last = "1G";
  std::vector<std::string> environment;
  std::filesystem::path file;
  OutputOptions output;
};

CollectiveKind kind_of(const std::string& word) {
  using enum CollectiveKind;
  switch (parse_nccl_tests_op(word)) {
    case NcclTestsOp::AllReduce:
      return AllReduce;
    case NcclTestsOp::AllGather:
      return AllGather;
    case NcclTestsOp::ReduceScatter:
      return ReduceScatter;
    case NcclTestsOp::Broadcast:
      return Broadcast;
    case NcclTestsOp::Reduce:
      return Reduce;
    default:
      throw UsageError{
          fmt::format("NCCL has no choice of algorithm for {}: it is sends and "
                      "receives",
                      word)};
  }
}

nccl::TunerQuestion question_of(const NcclTunerOptions& options, const Machine& machine) {
  nccl::TunerQuestion question;
  for (const std::string& word : options.operations) {
    const CollectiveKind kind = kind_of(word);
    if (std::ranges::find(question.kinds, kind) != question.kinds.end()) {
      throw UsageError{fmt::format("{} is named twice", word)};
    }
    question.kinds.push_back(kind);
  }
  if (question.kinds.empty()) {
    using enum CollectiveKind;
    question.kinds = {AllReduce, AllGather, ReduceScatter, Broadcast, Reduce};
  }
  question.first_bytes = parse_nccl_tests_size(options.first, "-b");
  question.last_bytes = parse_nccl_tests_size(options.last, "-e");
  if (options.nodes == 0u) throw UsageError{"--nodes 0: an operation needs a node"};
  if (question.first_bytes == 0) throw UsageError{"-b 0: a size is at least 1"};
  constexpr std::uint32_t kMostNodes = 65'536;
  if (options.nodes > kMostNodes) {
    throw UsageError{fmt::format("--nodes {}: at most {}", *options.nodes, kMostNodes)};
  }
  question.ranks = options.ranks.value_or(machine.gpus_per_node * options.nodes.value_or(1));
  if (question.ranks < 2) {
    throw UsageError{
        options.ranks
            ? fmt::format("--processes {}: NCCL has no choice with one rank", question.ranks)
            : fmt::format("{} has one GPU, and NCCL no choice with one rank\n  hint: --nodes 2",
                          machine.name)};
  }
  question.nodes = options.nodes.value_or(nodes_for(std::max(question.ranks, 1U), machine));
  question.environment = nccl_environment(options.environment);
  for (const EnvironmentProblem& wrong : check_environment(question.environment)) {
    throw UsageError{fmt::format("--env {}{}{}", wrong.message,
                                 wrong.hint.empty() ? "" : "\n  hint: ", wrong.hint)};
  }
  return question;
}

void tune(const NcclTunerOptions& options) {
  const Machine machine = changed_machine(options.machine, options.with);
  nccl::TunerQuestion question = question_of(options, machine);
  const nccl::Tuned tuned = nccl::tune_machine(machine, question);
  check_outputs({options.file, options.output.file});
  if (!options.file.empty()) {
    question.by_plugin = true;
    write_file(options.file, nccl::tuner_file(nccl::tune_machine(machine, question), machine.name));
  }
  switch (options.output.format) {
    case OutputFormat::Text:
      emit(options.output, nccl::tuned_text(tuned, machine.name));
      break;
    case OutputFormat::Csv:
      emit(options.output, nccl::tuned_csv(tuned));
      break;
    case OutputFormat::Json:
      emit(options.output, nccl::tuned_json(tuned, machine.name));
      break;
  }
}

}  // namespace

void add_nccl_tuner_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<NcclTunerOptions>();
  CLI::App& command = add_subcommand(
      app, "nccl-tuner",
      "Where another algorithm, protocol or number of channels beats NCCL's own choice",
      "foretrace nccl-tuner --processes 2 --tuner nccl_tuner.conf\n"
      "  foretrace nccl-tuner all_reduce -b 1M -e 16M --machine h100-nvswitch-8");
  command
      .add_option("operations", options->operations,
                  "all_reduce, all_gather, reduce_scatter, broadcast, reduce; default: all five")
      ->option_text("OP ...");
  add_machine_option(command, options->machine);
  add_with_option(command, options->with);
  add_host_option(command, options->with);
  CLI::Option* const processes = command.add_option(
      "--processes", options->ranks, "Ranks, of a GPU each; default: all GPUs of the nodes");
  add_other_name(command, "--ranks", processes, options->ranks);
  command.add_option("--nodes", options->nodes,
                     "Over which they are spread; default: as few as hold them");
  command.add_option("-b,--minbytes", options->first, "First size, as nccl-tests counts it")
      ->capture_default_str();
  command.add_option("-e,--maxbytes", options->last, "Last size")->capture_default_str();
  command.add_option("--env", options->environment, "A setting that stays, NCCL_NVLS_ENABLE=0")
      ->allow_extra_args(false);
  command
      .add_option("--tuner", options->file,
                  "Write the file that NCCL's example tuner plug-in reads (NCCL_TUNER_CONFIG_FILE)")
      ->check(written_file({".conf", ".csv"}), "")
      ->option_text("FILE.conf");
  add_output_options(command, options->output);
  command.callback([options, &exit_code] {
    tune(*options);
    exit_code = kDone;
  });
}

}  // namespace foretrace
