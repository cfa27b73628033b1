// Options that several commands share: --format, --output, --set, --with, --fidelity,
// and percentages.
#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/table/output_format.h"
#include "scenarios/read/scenario.h"
#include "sim/simulate.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace foretrace {

inline constexpr const char* kDefaultMachine = "h200-nvswitch-8";

struct OutputOptions {
  OutputFormat format = OutputFormat::Text;
  std::filesystem::path file;  ///< empty: stdout
};

/// Checks of options that name what a command writes, made before its work: `->check(f, "")`.
using OptionCheck = std::function<std::string(const std::string&)>;
/// A file whose name ends in one of `endings` (none: in anything), in a directory that takes files.
OptionCheck written_file(std::initializer_list<const char*> endings = {});
/// A directory that is there or can be made.
OptionCheck written_directory();

/// Adds --format text|json|csv and -o/--output FILE. A file's ending (.json, .csv; .md and .txt for
/// text) says its format, too; one that says another format, or none that there is, is refused.
void add_output_options(CLI::App& app, OutputOptions& options);
/// The same with the flag of the file named otherwise.
void add_output_options(CLI::App& app, OutputOptions& options, const std::string& file_flags,
                        const std::string& text_format);

/// Adds --format text|json|csv alone, for a command whose answer goes to stdout.
void add_format_option(CLI::App& app, OutputFormat& format, const std::string& text_format);

/// Adds -m/--machine with kDefaultMachine, or what `machine` holds, as its default.
CLI::Option* add_machine_option(CLI::App& command, std::string& machine);

/// To options.file, whole or not at all, or to stdout.
void emit(const OutputOptions& options, const std::string& text);

/// Adds --set NAME=VALUE, which gives a parameter of the scenario another value.
void add_set_option(CLI::App& command, ParameterValues& values);

/// Adds --with NAME=VALUE, which changes the machine: models/what_if/what_if.h.
void add_with_option(CLI::App& command, std::vector<std::string>& what_ifs);
/// Adds --host FILE alone: the host's file goes first among the what-ifs.
void add_host_option(CLI::App& command, std::vector<std::string>& what_ifs);
/// The what-if that --host FILE is. Throws UsageError where FILE is none.
std::string what_if_of_host(const std::string& file);

/// Adds --without term=ID, which leaves terms of the model out (models/terms.def).
void add_without_option(CLI::App& command, std::vector<std::string>& terms);
/// Leaves out what --without says, which the machine's name says then and a note on stderr.
void leave_out_terms(Machine& machine, const std::vector<std::string>& terms);

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
