#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/program/environment.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/print.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/environment_check.h"
#include "sim/machine_check.h"
#include "sim/applications/nccl_tests/agreement.h"
#include "sim/applications/nccl_tests/compare.h"
#include "sim/applications/nccl_tests/host_factor.h"
#include "sim/applications/nccl_tests/output.h"

namespace foretrace {
namespace {

struct NcclTestsOptions {
  std::string op, op_name;
  std::string min_bytes = "32M", max_bytes, step_bytes = "1M";
  std::optional<std::int64_t> step_factor;
  std::string machine = kDefaultMachine;
  std::vector<std::string> with;
  std::vector<std::string> environment;
  std::filesystem::path scenario;
  NcclTestsPlan plan;
  int check = 0;
  OutputOptions output;
  const CLI::App* command = nullptr;

  std::vector<std::filesystem::path> compare;
  std::vector<std::string> where;
  std::string tolerance;

  bool given(const std::string& flag) const {
    return command->count(flag) > 0 || (flag == "--processes" && command->count("--ranks") > 0);
  }
};

NcclTestsRange range_of(const NcclTestsOptions& options) {
  NcclTestsRange range;
  range.min_bytes = parse_nccl_tests_size(options.min_bytes, "-b");
  range.max_bytes =
      options.given("-e") ? parse_nccl_tests_size(options.max_bytes, "-e") : range.min_bytes;
  range.step_bytes = parse_nccl_tests_size(options.step_bytes, "-i");
  if (options.step_factor) {
    if (*options.step_factor < 1) {
      throw UsageError{fmt::format("-f {} never gets to the next size", *options.step_factor)};
    }
    range.step_factor = static_cast<std::uint64_t>(*options.step_factor);
  }
  return range;
}

/// "NAME=VALUE" each.
std::map<std::string, std::string> pairs(const std::vector<std::string>& texts, const char* flag) {
  std::map<std::string, std::string> all;
  for (const std::string& text : texts) {
    const auto equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw UsageError{fmt::format("{} {}: it is NAME=VALUE", flag, text)};
    }
    all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return all;
}

/// What a scenario could not say either.
void check_variables(const std::map<std::string, std::string>& environment, bool must_be_known) {
  for (const auto& [name, value] : environment) {
    const auto& known = environment_names();
    if (!must_be_known || std::ranges::find(known, name) != known.end()) continue;
    const EnvironmentProblem unknown = unknown_variable(name);
    throw UsageError{fmt::format("--env {}{}{}", unknown.message,
                                 unknown.hint.empty() ? "" : "\n  hint: ", unknown.hint)};
  }
  for (const EnvironmentProblem& wrong : check_environment(environment)) {
    throw UsageError{fmt::format("--env {}{}{}", wrong.message,
                                 wrong.hint.empty() ? "" : "\n  hint: ", wrong.hint)};
  }
}

/// The plan that the flags describe, without its sizes.
NcclTestsPlan plan_of(const NcclTestsOptions& options) {
  NcclTestsPlan plan = options.plan;
  plan.type = parse_nccl_tests_type(plan.type).name;
  plan.redop = parse_nccl_tests_redop(plan.redop);
  plan.environment = pairs(options.environment, "--env");
  check_variables(plan.environment, !options.scenario.empty());
  return plan;
}

/// Flags without a meaning for the operation are taken, as nccl-tests does, but not without a word.
void note_unused(const NcclTestsOptions& options, const NcclTestsPlan& plan) {
  const NcclTestsOpInfo& op = info(plan.op);
  if (options.given("-r") && !op.has_root) {
    print_error("note: -r changes nothing: {} has no root\n", op.name);
  }
  if (options.given("-o") && !op.reduces) {
    print_error("note: -o changes nothing: {} does not reduce\n", op.name);
  }
  Program settings;
  settings.environment = plan.environment;
  settings.file = "--env";
  print_error("{}", render(unmodelled_settings(settings), ""));
}

int predict(const NcclTestsOptions& options) {
  NcclTestsPlan plan = plan_of(options);
  plan.op = parse_nccl_tests_op(options.op);
  const Machine machine = changed_machine(options.machine, options.with);
  const NcclTestsRange range = range_of(options);
  const std::uint32_t nodes = nodes_for(plan.ranks(), machine);
  if (!options.given("--nodes") && machine.gpus_per_node > 1 && plan.processes % nodes == 0) {
    plan.nodes = nodes;
  }
  check_plan(plan, machine);
  plan.sizes = plan_sizes(plan, sizes_in(range));
  if (!options.scenario.empty()) {
    check_outputs({options.scenario, options.output.file});
    write_file(options.scenario,
               nccl_tests_scenario(plan, {{plan.iterations, plan.graph_launches}}));
    return kDone;
  }
  const std::vector<NcclTestsRow> rows = predict_nccl_tests(plan, machine);
  note_unused(options, plan);
  print_error("{}", render(check_network(plan.nodes, machine), ""));
  print_error("{}", rows.front().rests_on);
  switch (options.output.format) {
    case OutputFormat::Text:
      emit(options.output, nccl_tests_text(plan, range, machine, rows));
      break;
    case OutputFormat::Csv:
      emit(options.output, nccl_tests_csv(plan, rows));
      break;
    case OutputFormat::Json:
      emit(options.output, nccl_tests_json(plan, machine, rows));
      break;
  }
  return kDone;
}

/// What a flag says and a file says otherwise.
void check_agreement(const NcclTestsOptions& options, const NcclTestsSample& sample) {
  const auto check = [&](const char* flag, std::uint32_t NcclTestsPlan::*field) {
    const std::uint32_t there = sample.plan.*field;
    if (!options.given(flag) || options.plan.*field == there) return;
    throw UsageError{fmt::format("{} {}: {} holds a run with {}\n  hint: leave the flag out", flag,
                                 options.plan.*field, sample.file, there)};
  };
  check("--processes", &NcclTestsPlan::processes);
  check("--nodes", &NcclTestsPlan::nodes);
  check("-t", &NcclTestsPlan::threads);
  check("-g", &NcclTestsPlan::gpus);
  check("-n", &NcclTestsPlan::iterations);
  check("-G", &NcclTestsPlan::graph_launches);
  check("-z", &NcclTestsPlan::blocking);
  if (options.given("-d") && parse_nccl_tests_type(options.plan.type).name != sample.plan.type) {
    throw UsageError{fmt::format("-d {}: {} holds a run with {}\n  hint: leave the flag out",
                                 options.plan.type, sample.file, sample.plan.type)};
  }
}

std::vector<NcclTestsSample> read_samples(const NcclTestsOptions& options,
                                          const NcclTestsAssumed& assumed) {
  std::vector<NcclTestsSample> samples = read_nccl_tests(options.compare, assumed);
  for (const NcclTestsSample& sample : samples) check_agreement(options, sample);
  return samples;
}

int compare(const NcclTestsOptions& options) {
  NcclTestsAssumed assumed{plan_of(options), {}, pairs(options.where, "--where")};
  if (!options.op_name.empty()) assumed.op = parse_nccl_tests_op(options.op_name);
  std::optional<double> tolerance;
  if (!options.tolerance.empty()) tolerance = parse_percent(options.tolerance, "--tolerance");
  const Machine machine = changed_machine(options.machine, options.with);
  std::vector<NcclTestsSample> samples = read_samples(options, assumed);
  print_error("{}", contradictions(samples, machine));
  in_domains(samples, machine);
  const std::vector<NcclTestsComparison> comparisons = compare_nccl_tests(samples, machine);
  std::set<std::string> notes;
  for (const NcclTestsComparison& one : comparisons) {
    notes.insert(render(check_network(one.plan.nodes, machine), ""));
    std::istringstream lines{one.rows.front().predicted.rests_on};
    for (std::string line; std::getline(lines, line);) notes.insert(line + "\n");
  }
  for (const std::string& note : notes) print_error("{}", note);
  emit(options.output, render_nccl_tests(comparisons, options.output.format));
  if (const auto host = fit_host(comparisons, machine)) {
    print_error("note: {}", host_text(*host, machine));
  }
  return tolerance && worst_error(comparisons) > *tolerance ? kBadAnswer : kDone;
}

/// Flags that belong to the other way of use.
void refuse_flags(const NcclTestsOptions& options, std::initializer_list<const char*> flags,
                  const char* why) {
  for (const char* flag : flags) {
    if (options.given(flag)) throw UsageError{fmt::format("{} {}", flag, why)};
  }
}

int run_nccl_tests(const NcclTestsOptions& options) {
  if (!options.compare.empty()) {
    refuse_flags(options, {"-b", "-e", "-f", "-i", "--scenario"},
                 "has no meaning with --compare, which takes the sizes from its files");
    if (!options.op.empty()) {
      throw UsageError{
          fmt::format("--compare takes the operation from its files, not '{}'", options.op) +
          "\n  hint: --op-name gives it to files that do not tell"};
    }
    return compare(options);
  }
  refuse_flags(options, {"--op-name", "--where", "--tolerance"}, "belongs to --compare");
  if (options.op.empty()) throw UsageError{"an operation is needed: all_reduce, alltoall, ..."};
  return predict(options);
}

void add_size_flags(CLI::App& command, NcclTestsOptions& options) {
  command.add_option("-b,--minbytes", options.min_bytes, "First size")->capture_default_str();
  command.add_option("-e,--maxbytes", options.max_bytes, "Last size (default: the first)");
  command.add_option("-f,--stepfactor", options.step_factor, "Each size is so many times the last");
  command
      .add_option("-i,--stepbytes", options.step_bytes, "Without -f: so much more than the last")
      ->capture_default_str();
}

void add_run_flags(CLI::App& command, NcclTestsPlan& plan) {
  const auto add = [&](const char* names, auto& value, const char* text) {
    command.add_option(names, value, text)->capture_default_str();
  };
  CLI::Option* const processes =
      command.add_option("--processes", plan.processes, "As mpirun -np")->capture_default_str();
  add_other_name(command, "--ranks", processes, plan.processes);
  command.add_option("--nodes", plan.nodes,
                     "Nodes that the processes are spread over (default: as few as hold them)");
  add("-t,--nthreads", plan.threads, "Host threads in each process");
  add("-g,--ngpus", plan.gpus, "GPUs that each thread drives");
  add("-n,--iters", plan.iterations,
      "Iterations. At most 20 (and 4 launches of a graph) are simulated; the rest is taken to go "
      "on "
      "as steadily as those");
  add("-w,--warmup_iters", plan.warmup, "Iterations before the timed ones");
  CLI::Option* const type =
      command
          .add_option("-d,--datatype", plan.type,
                      "float, half, bfloat16, double, int8, uint8, ... int64, uint64")
          ->capture_default_str();
  add_other_name(command, "--type", type, plan.type);
  add("-o,--op", plan.redop, "Reduction: sum, prod, min, max, avg. Files: --output");
  add("-r,--root", plan.root, "Rank of the root");
  add("-G,--cudagraph", plan.graph_launches,
      "Capture the iterations in a CUDA graph and launch it so often; with -g, one graph for the "
      "GPUs of a thread");
  add("-R,--local_register", plan.local_register,
      "1: ncclCommRegister of both buffers. With -G NCCL registers them itself "
      "(NCCL_GRAPH_REGISTER)");
  command.add_option("--nccl-version", plan.nccl,
                     "2.18.3 to 2.30, whose rules choose; default: what a compared file's column "
                     "nccl says, else the machine's");
  add("-z,--blocking", plan.blocking,
      "1: wait and barrier after each iteration, 2: wait, 3: as 1, the barrier not timed");
}

/// nccl-tests' flags that make it measure something else, of which the defaults are taken; and
/// those that change no time.
void add_refused_flags(CLI::App& command) {
  struct Refused {
    const char* flag;
    const char* same;
    const char* what;
  };
  static constexpr std::array kRefused{
      Refused{"--agg_iters", "1", "several operations in one group"},
      Refused{"-a,--average", "1", "other than the mean over the ranks"},
      Refused{"-C,--report_cputime", "0", "the host's time alone"},
      Refused{"-D,--device_implementation", "0", "kernels that call NCCL"},
      Refused{"-y,--stream_null", "0", "the legacy default stream"},
  };
  for (const Refused& refused : kRefused) {
    const auto check = [refused](const std::vector<std::string>& values) {
      const std::string value = values.empty() ? "" : values.front();
      if (value == refused.same) return;
      throw UsageError{fmt::format("nccl-tests' {} {} is not predicted: {}",
                                   std::string{refused.flag}.substr(0, 2), value, refused.what)};
    };
    command.add_option_function<std::vector<std::string>>(refused.flag, check)
        ->expected(0, 1)
        ->group("");
  }
  for (const char* harmless : {"-p,--parallel_init", "-T,--timeout", "-N,--run_cycles"}) {
    command.add_option_function<std::string>(harmless, [](const std::string&) {})->group("");
  }
}

void add_output_flags(CLI::App& command, NcclTestsOptions& options) {
  add_output_options(command, options.output, "--output", "nccl-tests' own table");
  command
      .add_option("--scenario", options.scenario,
                  "Write the loop as a scenario, to measure it, and predict nothing")
      ->check(written_file({".yaml", ".yml"}), "")
      ->option_text("FILE");
}

/// nccl-tests' own -m counts the operations of a group: "-m 1" is no machine, and changes nothing.
void add_machine_flag(CLI::App& command, std::string& machine) {
  const auto take = [&machine](const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      if (value.find_first_not_of("0123456789") != std::string::npos) {
        machine = value;
      } else if (value != "1") {
        throw UsageError{fmt::format(
            "nccl-tests' -m {} is not predicted: several operations in one group", value)};
      }
    }
  };
  command
      .add_option_function<std::vector<std::string>>(
          "-m,--machine", take, "Machine model: a name of foretrace list machines, or a .yaml file")
      ->allow_extra_args(false)
      ->default_str(machine);
}

void add_compare_flags(CLI::App& command, NcclTestsOptions& options) {
  command.add_option("--compare", options.compare,
                     "Compare nccl-tests' output, as text behind any launcher's prefixes or as -J "
                     "writes it, or .csv files with the columns op or collective, bytes or "
                     "size_bytes, gpus or ranks, time_us; -: standard input");
  command.add_option("--op-name", options.op_name, "Operation of compared files that do not tell");
  command.add_option(
      "--where", options.where,
      "COLUMN=TEXT: only the rows of .csv files that hold TEXT in COLUMN; numbers must "
      "be equal");
  command.add_option("--tolerance", options.tolerance, "Exit with 1 when an error exceeds it: 15%");
}

}  // namespace

void add_nccl_tests_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<NcclTestsOptions>();
  CLI::App& command = add_subcommand(
      app, "nccl-tests", "Predict nccl-tests' table without a GPU, or compare real output with it",
      "foretrace nccl-tests all_reduce -b 8 -e 4G -f 2 --processes 8 -g 1 "
      "--machine h200-nvswitch-8\n"
      "  foretrace nccl-tests --compare all_reduce.log --machine h200-nvswitch-8");
  command
      .add_option("operation", options->op,
                  "all_reduce, all_gather, reduce_scatter, broadcast, reduce, alltoall, "
                  "sendrecv, gather, scatter, or the program: all_reduce_perf")
      ->type_name(
          "{all_reduce,all_gather,reduce_scatter,broadcast,reduce,alltoall,sendrecv,gather,"
          "scatter}")
      ->option_text("TEXT");
  add_machine_flag(command, options->machine);
  add_with_option(command, options->with);
  add_host_option(command, options->with);
  add_size_flags(command, *options);
  add_run_flags(command, options->plan);
  add_fidelity_option(command, options->plan.fidelity);
  command.add_option("--env", options->environment, "NAME=VALUE of the environment: NCCL_PROTO=LL");
  command.add_option("-c,--check", options->check, "Taken as nccl-tests' -c; no data is checked");
  add_refused_flags(command);
  add_output_flags(command, *options);
  add_compare_flags(command, *options);
  options->command = &command;
  command.callback([options, &exit_code] { exit_code = run_nccl_tests(*options); });
}

}  // namespace foretrace
