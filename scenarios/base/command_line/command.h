// What the two command lines (foretrace, foretrace-hw) share: how a subcommand is listed, and how
// failures become exit codes. A command's code lives with the library it drives.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "scenarios/base/text/errors.h"

namespace foretrace {

/// Adds one subcommand to `app`; its callback sets `exit_code`.
using AddCommand = void (*)(CLI::App& app, int& exit_code);

/// A subcommand whose --help begins with `example`, a command line that can be pasted.
CLI::App& add_subcommand(CLI::App& app, const std::string& name, const std::string& summary,
                         const std::string& example);

/// Options of this group are taken and not shown.
inline constexpr const char* kOtherNames = "other names";

/// Another name of `option`, which --help leaves out: as it was called before, or as a neighbouring
/// command calls it. `value` is the option's own.
template <class T>
void add_other_name(CLI::App& command, const std::string& flag, CLI::Option* option, T& value) {
  const auto once = [option](const std::string&) -> std::string {
    return option->count() > 0 ? "it is " + option->get_name() + ", which is given, too" : "";
  };
  command.add_option(flag, value)->check(once, "")->group(kOtherNames);
}

/// To stderr: rendered diagnostics as they are, a sentence as an error with its line end.
void print_failure(const std::string& what);

/// Parses, runs the chosen subcommand, prints what went wrong to stderr, returns the exit code.
/// An unknown flag or subcommand is exit 2 with a suggestion; an answer that stdout did not take is
/// exit 4.
int run_command_line(int argc, char** argv, const std::string& description,
                     const std::string& version, const std::vector<AddCommand>& commands);

}  // namespace foretrace
