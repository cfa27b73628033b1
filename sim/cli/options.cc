#include "sim/cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <span>

#include "models/what_if/names.h"
#include "models/what_if/what_if.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/words.h"

namespace foretrace {

namespace {

namespace fs = std::filesystem;

struct Ending {
  const char* text;
  OutputFormat format;
};
constexpr std::array kEndings{Ending{".md", OutputFormat::Text}, Ending{".txt", OutputFormat::Text},
                              Ending{".log", OutputFormat::Text},
                              Ending{".json", OutputFormat::Json},
                              Ending{".csv", OutputFormat::Csv}};

/// Devices and pipes have no kind of their own.
bool is_special(const fs::path& file) {
  std::error_code none;
  const fs::file_status status = fs::status(file, none);
  return fs::exists(status) && !fs::is_regular_file(status);
}

/// The file's ending as the format, or whether it agrees with --format.
void settle_format(const CLI::App& app, OutputOptions& options) {
  if (options.file.empty() || is_special(options.file)) return;
  const std::string ending = lower(options.file.extension().string());
  if (ending.empty()) return;
  const auto* known = std::ranges::find(kEndings, ending, &Ending::text);
  if (known == kEndings.end()) {
    throw UsageError{
        fmt::format("{}: no command writes a file of this kind\n  hint: .json, .csv, or .md, "
                    ".txt and .log for text",
                    options.file.string())};
  }
  if (app.count("--format") > 0 && known->format != options.format) {
    throw UsageError{
        fmt::format("{}: its ending says another format than --format\n  hint: leave --format out",
                    options.file.string())};
  }
  options.format = known->format;
}

}  // namespace

OptionCheck written_file(std::initializer_list<const char*> endings) {
  const std::vector<std::string> known{endings.begin(), endings.end()};
  return [known](const std::string& text) -> std::string {
    const fs::path file{text};
    check_can_write(file);
    if (known.empty() || is_special(file)) return {};
    const std::string ending = lower(file.extension().string());
    if (std::ranges::find(known, ending) != known.end()) return {};
    return fmt::format("{} is no file that this writes: its name ends in {}", text,
                       fmt::join(known, " or "));
  };
}

OptionCheck written_directory() {
  return [](const std::string& text) -> std::string {
    check_can_make(text);
    return {};
  };
}

void add_output_options(CLI::App& app, OutputOptions& options) {
  add_output_options(app, options, "-o,--output", "Markdown tables");
}

void add_output_options(CLI::App& app, OutputOptions& options, const std::string& file_flags,
                        const std::string& text_format) {
  add_format_option(app, options.format, text_format);
  app.add_option(file_flags, options.file,
                 "Write to FILE instead of stdout; .json, .csv, .md and .txt say the format, too")
      ->check(written_file(), "")
      ->option_text("FILE");
  app.parse_complete_callback([&app, &options] { settle_format(app, options); });
}

void add_format_option(CLI::App& app, OutputFormat& format, const std::string& text_format) {
  const std::map<std::string, OutputFormat> formats{
      {"text", OutputFormat::Text}, {"json", OutputFormat::Json}, {"csv", OutputFormat::Csv}};
  app.add_option("--format", format, fmt::format("text ({}), json or csv", text_format))
      ->transform(CLI::CheckedTransformer(formats).description(""))
      ->option_text("text|json|csv");
}

CLI::Option* add_machine_option(CLI::App& command, std::string& machine) {
  return command
      .add_option("-m,--machine", machine,
                  "Machine model: a name of foretrace list machines, or a .yaml file")
      ->capture_default_str();
}

void emit(const OutputOptions& options, const std::string& text) {
  if (!options.file.empty()) {
    write_file(options.file, text);
  } else {
    print_text(text);
  }
}

double parse_percent(const std::string& text, const std::string& flag) {
  double value{};
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  std::string_view unit{rest, end};
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (code == std::errc{} && unit == "%" && value >= 0 && value <= 1e6) return value / 100;
  const bool bare = code == std::errc{} && unit.empty() && value >= 0 && value <= 1e6;
  throw UsageError{
      fmt::format("{}: '{}' is not a percentage\n  hint: {}", flag, text,
                  bare ? fmt::format("did you mean {}%?", text) : std::string{"write it as 10%"})};
}

void add_set_option(CLI::App& command, ParameterValues& values) {
  command
      .add_option_function<std::vector<std::string>>(
          "--set",
          [&values](const std::vector<std::string>& all) {
            for (const std::string& one : all) {
              const auto equals = one.find('=');
              if (equals == std::string::npos || equals == 0) {
                throw UsageError{fmt::format("--set needs name=value, and this is '{}'", one)};
              }
              values[one.substr(0, equals)] = one.substr(equals + 1);
            }
          },
          "Give a parameter of the scenario another value; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void add_with_option(CLI::App& command, std::vector<std::string>& what_ifs) {
  std::vector<std::string_view> words;
  for (const WhatIfName& known : what_if_names()) words.push_back(known.name);
  command
      .add_option("--with", what_ifs,
                  fmt::format("What if: {} or a machine's parameter, by a factor (nvlink=0.5x) or "
                              "as a value (nic=\"400 Gb/s\"); may be repeated",
                              fmt::join(words, ", ")))
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

std::string what_if_of_host(const std::string& file) {
  if (file.ends_with(".yaml")) return "host=" + file;
  throw UsageError{fmt::format(
      "--host: '{}' is no .yaml file\n  hint: foretrace-hw host -o host.yaml measures a host",
      file)};
}

void add_host_option(CLI::App& command, std::vector<std::string>& what_ifs) {
  command
      .add_option_function<std::string>(
          "--host",
          [&what_ifs](const std::string& file) {
            what_ifs.insert(what_ifs.begin(), what_if_of_host(file));
          },
          "The machine's GPUs in another host: what foretrace-hw host wrote there")
      ->option_text("FILE");
}

namespace {

/// A word may change a hundred parameters, the one that it is named after first.
constexpr std::size_t kEachNamed = 4;

void print_what_ifs(std::span<const Changed> changed) {
  while (!changed.empty()) {
    const Changed& first = changed.front();
    // The same one may be given twice: then its first parameter comes again.
    const auto other = [&](const Changed& one) {
      return &one != &first && (one.what_if != first.what_if || one.key == first.key);
    };
    const auto alike =
        static_cast<std::size_t>(std::ranges::find_if(changed, other) - changed.begin());
    const std::size_t named = alike > kEachNamed ? 1 : alike;
    for (const Changed& one : changed.first(named)) {
      const std::string more = alike > named ? fmt::format(", and {} more parameters by '{}'",
                                                           alike - named, one.what_if)
                                             : "";
      print_error("note: what if {} were {} instead of {}{}\n", one.key, one.to, one.from, more);
    }
    changed = changed.subspan(alike);
  }
}

}  // namespace

void add_without_option(CLI::App& command, std::vector<std::string>& terms) {
  command
      .add_option("--without", terms,
                  "Leave terms of the model out, to see what they explain: term=cold_operands; "
                  "foretrace list terms has all; may be repeated")
      ->type_name("term=ID[,ID]")
      ->allow_extra_args(false);
}

void leave_out_terms(Machine& machine, const std::vector<std::string>& terms) {
  for (const std::string& text : terms) machine.leave_out(terms_of(text));
  if (!terms.empty()) machine.name += fmt::format(" without {}", fmt::join(terms, ", "));
  for (std::size_t i = 0; i < kTermCount && !terms.empty(); ++i) {
    const auto term = static_cast<Term>(i);
    if (machine.takes(term)) continue;
    print_error("note: without {}: {}\n", info(term).id, info(term).explains);
  }
}

Machine changed_machine(const std::string& name, const std::vector<std::string>& what_ifs) {
  Machine machine = load_machine(name);
  print_what_ifs(apply_what_ifs(machine, what_ifs));
  return machine;
}

void add_scenario_options(CLI::App& command, std::filesystem::path& scenario,
                          ParameterValues& values) {
  command
      .add_option("--scenario", scenario,
                  "The scenario file, when it is not where the timeline says")
      ->option_text("FILE");
  add_set_option(command, values);
}

void add_fidelity_option(CLI::App& command, Fidelity& fidelity) {
  command
      .add_option_function<std::string>(
          "--fidelity",
          [&fidelity](const std::string& name) {
            fidelity = name == "chunk" ? Fidelity::Chunk : Fidelity::Flow;
          },
          "flow: a NCCL operation is a latency and one flow (default); chunk: it runs slice by "
          "slice, so late ranks and shared ports act within it")
      ->check(CLI::IsMember({"flow", "chunk"}).description(""))
      ->option_text("flow|chunk");
}

}  // namespace foretrace
