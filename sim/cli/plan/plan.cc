#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "reports/timeline/write_file.h"
#include "scenarios/architecture/counts.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/values/time_text.h"
#include "scenarios/read/scenario.h"
#include "scenarios/training_step/words.h"
#include "sim/applications/plan/coarse.h"
#include "sim/applications/plan/search.h"
#include "sim/applications/plan/write.h"
#include "sim/applications/training/usage.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/plan/asked_model.h"
#include "sim/machine_check.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr int kInterrupted = 128 + SIGINT;  // as a shell has it

struct PlanOptions {
  std::string model;
  std::string machine = kDefaultMachine;
  std::vector<std::string> with, also, keep;
  std::vector<std::int64_t> gpus;
  std::int64_t sequence = 8192, global_batch = 1024;
  std::string precision = "bfloat16";
  std::string parameters = "bfloat16";
  std::size_t top = 3;
  std::optional<double> cost;
  std::vector<std::pair<std::size_t, std::string>> written;
  std::vector<fs::path> outputs;
  OutputFormat format = OutputFormat::Text;
  bool machine_is_named = false;
  bool batch_is_given = false;
  bool coarse = false;
};

/// What a scenario's name may have of it.
std::string plain_name(const std::string& model) {
  const fs::path path{model};
  std::string name = path.has_extension() && fs::exists(path) ? path.stem().string() : model;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

/// Degrees are numbers from 1 on, the others words: what no layout has is said as such.
void check_kept(const std::string& name, const std::string& value) {
  const bool is_number = name != "sharding" && name != "recompute";
  if (!is_number) {
    std::vector<std::string> words;
    if (name == "sharding") {
      using training::Sharding;
      for (const Sharding tried : {Sharding::None, Sharding::Zero1, Sharding::Fsdp}) {
        words.push_back(training::word_of(training::sharding_words(), tried));
      }
    } else {
      for (const auto& [word, choice] : training::recompute_words()) words.push_back(word);
    }
    if (std::ranges::find(words, value) != words.end()) return;
    throw UsageError{
        fmt::format("--keep {}={}: it is one of {}", name, value, fmt::join(words, ", "))};
  }
  constexpr std::int64_t kMost = 1'000'000;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool is_whole =
      error == std::errc{} && end == value.data() + value.size() && std::to_string(number) == value;
  if (!is_whole || number < 1 || number > kMost) {
    throw UsageError{
        fmt::format("--keep {}={}: it is a whole number from 1 to {}", name, value, kMost)};
  }
}

std::map<std::string, std::string> kept_of(const std::vector<std::string>& texts) {
  const auto known = plan::choices_of({});
  std::map<std::string, std::string> kept;
  for (const std::string& text : texts) {
    const auto equals = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, equals);
    if (equals == text.size() || !known.contains(name)) {
      std::vector<std::string> names;
      for (const auto& [one, value] : known) names.push_back(one);
      const std::string near = known.contains(name) ? "" : suggest(name, names);
      throw UsageError{fmt::format("--keep {}: it is NAME=VALUE\n  hint: {}NAME is one of {}", text,
                                   near.starts_with("did you mean") ? near + " " : "",
                                   fmt::join(names, ", "))};
    }
    check_kept(name, text.substr(equals + 1));
    kept[name] = text.substr(equals + 1);
  }
  return kept;
}

plan::Question question_of(const PlanOptions& options, const std::vector<std::string>& what_ifs) {
  constexpr double kMostCost = 1e9;
  if (options.cost && !(*options.cost > 0 && *options.cost <= kMostCost)) {  // NaN is neither
    throw UsageError{
        fmt::format("--cost-per-gpu-hour {}: more than 0 and at most 10^9", *options.cost)};
  }
  check_model(options.model);
  plan::Question question;
  question.model = model_text(options.model);
  question.model_name = plain_name(options.model);
  question.machine_name = options.machine;
  question.what_ifs = what_ifs;
  question.machine = changed_machine(options.machine, what_ifs);
  for (auto one = options.gpus.begin(); one != options.gpus.end(); ++one) {
    if (std::find(options.gpus.begin(), one, *one) == one) continue;
    throw UsageError{fmt::format("--gpus: {} is named twice", *one)};
  }
  question.gpus = options.gpus;
  question.sequence = options.sequence;
  question.global_batch = options.global_batch;
  question.float32_parameters = options.parameters == "float32";
  question.kept = kept_of(options.keep);
  question.top = options.top;
  question.cost_per_gpu_hour = options.cost;
  static_cast<void>(sim::mfu_peak(question.machine));  // there is one
  if (const auto why = why_no_bfloat16(question.machine)) {
    throw UsageError{fmt::format("{}, and all steps that plan tries are in bfloat16", *why)};
  }
  question.float8 = options.precision == "float8";
  if (question.float8) {
    const auto cannot =
        why_no_products(question.machine, DataType::Float8E4M3, Scales::Tensor, false);
    if (cannot) {
      throw UsageError{
          fmt::format("--precision float8: {}\n  hint: {}", cannot->why, cannot->hint)};
    }
  }
  // The reader says what is wrong with the model, and what it is.
  plan::Layout one;
  one.gpus = 1;
  const std::string text = plan::scenario_text(question, one, 1);
  const auto training = read_training(text, options.model);
  FORETRACE_CHECK(training, "a layout is a training step");
  question.architecture = training->step.model;
  if (what_ifs.size() == options.with.size()) {
    print_error("{}", render(training->warnings, text));
  }
  return question;
}

volatile std::sig_atomic_t was_interrupted = 0;

/// The first one ends the search, whose answer is what is known by then; the second one the
/// program.
void interrupt(int) {
  was_interrupted = 1;
  std::signal(SIGINT, SIG_DFL);  // NOLINT(cert-err33-c): cannot fail for these
}

void listen_to_interrupts() {
  struct sigaction action {};
  action.sa_handler = interrupt;  // without SA_RESTART: who waits for a child is told
  ::sigaction(SIGINT, &action, nullptr);
}

/// One line that is written over, on a terminal only.
bool show_progress(const plan::Standing& at) {
  if (::isatty(STDERR_FILENO) != 0) {
    constexpr std::size_t kWidth = 100;
    std::string line = fmt::format("{} GPUs: {} {} of {}", at.gpus, at.doing, at.done, at.all);
    if (at.best != nullptr) {
      line += fmt::format("; best {}, {}", format_time(at.best->prediction.seconds * 1e9),
                          describe(at.best->layout));
    }
    print_error("\r{:<{}.{}}", line, kWidth, kWidth);
  }
  return was_interrupted == 0;
}

void end_progress() {
  if (::isatty(STDERR_FILENO) != 0) print_error("\n");
}

/// As many sequences as plans usually have, or, where no layout divides those, twice as many, and
/// so on: a pipeline needs as many micro-batches of each replica as it has stages.
std::int64_t usual_batch(plan::Question question) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  const std::int64_t usual = question.global_batch;
  for (; question.global_batch <= kMost; question.global_batch *= 2) {
    const bool all = std::ranges::none_of(
        question.gpus, [&](std::int64_t gpus) { return plan::layouts(question, gpus).empty(); });
    if (all) return question.global_batch;
  }
  return usual;
}

void write_scenarios(const PlanOptions& options, const plan::Question& question,
                     const std::vector<plan::Answer>& answers) {
  std::vector<std::pair<const plan::Answer*, const plan::Row*>> rows;
  plan::for_each_row(answers, [&](const plan::Answer& answer, const plan::Row& row, std::size_t) {
    rows.emplace_back(&answer, &row);
  });
  for (const auto& [number, file] : options.written) {
    if (number < 1 || number > rows.size()) {
      throw UsageError{
          fmt::format("--write-scenario {}: the plan has rows 1 to {}", number, rows.size())};
    }
    const plan::Row& row = *rows[number - 1].second;
    std::string with;
    for (const std::string& what_if : rows[number - 1].first->what_ifs)
      with += fmt::format(" --with \"{}\"", what_if);
    const bool is_whole = row.prediction.simulated_passes == row.layout.passes;
    const std::string command =
        fmt::format("foretrace simulate {} --machine {}{} --one-of-each{}", file,
                    question.machine_name, with, is_whole ? "" : " --few-passes");
    const std::string text = fmt::format("# {} on {} GPUs: {}.\n# Predicted {} a step: {}\n{}",
                                         question.model_name, row.layout.gpus, describe(row.layout),
                                         format_time(row.prediction.seconds * 1e9), command,
                                         scenario_text(question, row.layout));
    write_file(file, text);
    print_out("row {}: {}\n", number, command);
  }
}

int print_coarse(const PlanOptions& options, const plan::Question& question) {
  std::vector<plan::CoarseAnswer> answers;
  for (const auto gpus : question.gpus) answers.push_back(plan::coarse_plan(question, gpus));
  print_text(options.format == OutputFormat::Json ? json_of(question, answers)
                                                  : text_of(question, answers));
  return std::ranges::any_of(answers, [](const auto& one) { return one.fitting > 0; }) ? kDone
                                                                                       : kBadAnswer;
}

int run_plan(const PlanOptions& options) {
  if (!options.coarse) listen_to_interrupts();  // before the first line, which says that it runs
  plan::Question question = question_of(options, options.with);
  if (!options.batch_is_given) question.global_batch = usual_batch(question);
  if (question.global_batch != options.global_batch) {
    print_error("note: {} sequences a step: no layout divides {}; --global-batch says how many\n",
                question.global_batch, options.global_batch);
  }
  if (options.coarse) return print_coarse(options, question);
  std::vector<plan::Question> questions{question};
  for (const std::string& what_if : options.also) {
    auto what_ifs = options.with;
    what_ifs.push_back(what_if);
    questions.push_back(question_of(options, what_ifs));
    questions.back().global_batch = question.global_batch;
  }
  if (!options.machine_is_named) {
    print_error("note: on {}, the default machine: --machine names another\n", options.machine);
  }
  const std::int64_t most = std::ranges::max(question.gpus);
  const std::uint32_t nodes = nodes_for(static_cast<std::uint64_t>(most), question.machine);
  print_error("{}", render(check_network(nodes, question.machine), ""));
  std::vector<fs::path> results = options.outputs;
  for (const auto& [number, file] : options.written) results.emplace_back(file);
  check_outputs(results);
  std::vector<plan::Answer> answers;
  for (const plan::Question& one : questions) {
    for (const std::int64_t gpus : one.gpus) {
      if (was_interrupted == 0 || answers.empty())
        answers.push_back(plan::search(one, gpus, show_progress));
    }
  }
  end_progress();
  if (options.format == OutputFormat::Text) {
    print_out("model {}: {}\n", question.architecture.name,
              training::understood(question.architecture));
  }
  print_text(options.format == OutputFormat::Json  ? json_of(question, answers)
             : options.format == OutputFormat::Csv ? csv_of(question, answers)
                                                   : text_of(question, answers));
  for (const fs::path& file : options.outputs) {
    const auto extension = file.extension();
    write_file(file, extension == ".html"   ? page_of(question, answers)
                     : extension == ".json" ? json_of(question, answers)
                                            : csv_of(question, answers));
  }
  write_scenarios(options, question, answers);
  if (was_interrupted != 0) return kInterrupted;
  const bool any =
      std::ranges::any_of(answers, [](const plan::Answer& answer) { return !answer.best.empty(); });
  return any ? kDone : kBadAnswer;
}

}  // namespace

void add_plan_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App& command = add_subcommand(
      app, "plan", "The best layouts of a model's training step, and what limits them",
      "foretrace plan llama3-70b --machine h100-nvswitch-8 --gpus 64,512 -o plan.html\n"
      "  foretrace plan config.json --gpus 128 --also nic=0.5x --write-scenario 1 best.yaml");
  command
      .add_option("model", options->model,
                  "A name of scenarios/architectures (llama3-70b), or a config.json of a Hugging "
                  "Face model")
      ->required();
  add_machine_option(command, options->machine);
  add_with_option(command, options->with);
  add_host_option(command, options->with);
  command
      .add_option("--also", options->also,
                  "Answers the same of the machine changed by this, too, in the same table and "
                  "page: nic=0.5x; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_option("--gpus", options->gpus, "Numbers of GPUs, with commas between")
      ->required()
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20).description(""));
  command
      .add_option("--global-batch", options->global_batch,
                  "Sequences of a step; the default doubled until a layout divides it")
      ->check(CLI::Range(1, 1 << 24).description(""))
      ->capture_default_str();
  command.add_option("--sequence", options->sequence, "Tokens of a sequence: 16k is 16384")
      ->check(CLI::Range(1, 1 << 24).description(""))
      ->capture_default_str();
  command
      .add_option("--precision", options->precision,
                  "What linear layers multiply: bfloat16 or float8 (dense models, tensor: 1)")
      ->check(CLI::IsMember({"bfloat16", "float8"}).description(""))
      ->capture_default_str();
  command.add_option("--parameters", options->parameters, "bfloat16 or float32")
      ->check(CLI::IsMember({"bfloat16", "float32"}).description(""))
      ->capture_default_str();
  command
      .add_option(
          "--keep", options->keep,
          "Only layouts with this tensor, context, pipeline, virtual, expert, micro, sharding or "
          "recompute; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_option("--top", options->top, "Rows for each number of GPUs")
      ->check(CLI::Range(1, 100).description(""))
      ->capture_default_str();
  command.add_option("--cost-per-gpu-hour", options->cost,
                     "In any currency: adds what 10^12 tokens cost");
  command
      .add_option(
          "-o,--output", options->outputs,
          "FILE.html is a page with curves, FILE.json and FILE.csv have every figure; may be "
          "repeated")
      ->check(written_file({".html", ".json", ".csv"}), "")
      ->option_text("FILE")
      ->allow_extra_args(false);
  add_format_option(command, options->format, "the best layouts in words");
  command
      .add_option("--write-scenario", options->written,
                  "Write a row's scenario, which simulate predicts and others may change; may be "
                  "repeated")
      ->option_text("ROW FILE")
      ->allow_extra_args(false);
  CLI::Option* const coarse = command.add_flag(
      "--coarse", options->coarse, "Only what fits, and bounds of the likely layouts' times");
  for (const char* other : {"--also", "--output", "--write-scenario"}) coarse->excludes(other);
  command.callback([options, &command, &exit_code] {
    options->machine_is_named = command.count("--machine") > 0;
    options->batch_is_given = command.count("--global-batch") > 0;
    exit_code = run_plan(*options);
  });
}

}  // namespace foretrace
