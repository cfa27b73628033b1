// Options that several commands share: --format, --output, --set, --fidelity, and percentages.
#pragma once

#include <filesystem>
#include <string>

#include "reports/table/output_format.h"
#include "scenarios/read/scenario.h"
#include "sim/simulate.h"

namespace CLI {
class App;
}

namespace foretrace {

struct OutputOptions {
  OutputFormat format = OutputFormat::Text;
  std::filesystem::path file;  ///< empty: stdout
};

/// Adds --format text|json|csv and -o/--output FILE.
void add_output_options(CLI::App& app, OutputOptions& options);

/// To options.file, whole or not at all, or to stdout.
void emit(const OutputOptions& options, const std::string& text);

/// Adds --set NAME=VALUE, which gives a parameter of the scenario another value.
void add_set_option(CLI::App& command, ParameterValues& values);

/// Adds --scenario FILE, for runs whose scenario is not where their timeline says, and --set.
void add_scenario_options(CLI::App& command, std::filesystem::path& scenario,
                          ParameterValues& values);

/// Adds --fidelity flow|chunk.
void add_fidelity_option(CLI::App& command, Fidelity& fidelity);

/// "10%" or "10 %" is 0.1. Throws UsageError naming `flag`; a bare number is an error with a hint.
double parse_percent(const std::string& text, const std::string& flag);

}  // namespace foretrace
