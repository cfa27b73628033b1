// Options that several commands share: --format, --output, --set, --with, --fidelity,
// and percentages.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/table/output_format.h"
#include "scenarios/read/scenario.h"
#include "sim/simulate.h"

namespace CLI {
class App;
}

namespace foretrace {

inline constexpr const char* kDefaultMachine = "h200-nvswitch-8";

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

/// Adds --with NAME=VALUE, which changes the machine: models/what_if/what_if.h.
void add_with_option(CLI::App& command, std::vector<std::string>& what_ifs);

/// The machine with what --with changes, which a note on stderr lists.
Machine changed_machine(const std::string& name, const std::vector<std::string>& what_ifs);

/// Adds --scenario FILE, for runs whose scenario is not where their timeline says, and --set.
void add_scenario_options(CLI::App& command, std::filesystem::path& scenario,
                          ParameterValues& values);

/// Adds --fidelity flow|chunk.
void add_fidelity_option(CLI::App& command, Fidelity& fidelity);

/// "10%" or "10 %" is 0.1. Throws UsageError naming `flag`; a bare number is an error with a hint.
double parse_percent(const std::string& text, const std::string& flag);

}  // namespace foretrace
