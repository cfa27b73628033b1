#include "sim/cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <span>

#include "models/what_if/names.h"
#include "models/what_if/what_if.h"
#include "reports/timeline/write_file.h"
#include "scenarios/command_line/command.h"
#include "scenarios/text/print.h"

namespace foretrace {

void add_output_options(CLI::App& app, OutputOptions& options) {
  const std::map<std::string, OutputFormat> formats{
      {"text", OutputFormat::Text}, {"json", OutputFormat::Json}, {"csv", OutputFormat::Csv}};
  app.add_option("--format", options.format, "text (Markdown tables), json or csv")
      ->transform(CLI::CheckedTransformer(formats).description(""))
      ->option_text("text|json|csv");
  app.add_option("-o,--output", options.file, "Write to FILE instead of stdout")
      ->option_text("FILE");
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
  const bool bare = code == std::errc{} && unit.empty();
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
                              "as a value (nic=\"50 GB/s\"); may be repeated",
                              fmt::join(words, ", ")))
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
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
