// What the two command lines (foretrace, foretrace-hw) share: how a subcommand is listed, and how
// failures become exit codes. A command's code lives with the library it drives.
#pragma once

#include <CLI/CLI.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace foretrace {

/// Exit codes of both programs.
enum ExitCode : int {
  kDone = 0,
  kBadAnswer = 1,   ///< out of tolerance, expectation broken, deadlock, wrong data
  kWrongUse = 2,    ///< flags, missing or bad files, unknown names, too few GPUs in a model
  kCannotHere = 3,  ///< this real machine has no GPU, or too few
  kBroke = 4,       ///< CUDA, NCCL, MPI or the disk failed while running
  kOurBug = 70,     ///< an internal check failed
};

/// The user's input is wrong; what() holds the rendered diagnostics or one sentence. Exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// This machine lacks what the command needs. Exit code 3.
class CannotHereError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// A file could not be read or written while running. Exit code 4.
class IoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Adds one subcommand to `app`; its callback sets `exit_code`.
using AddCommand = void (*)(CLI::App& app, int& exit_code);

/// A subcommand whose --help begins with `example`, a command line that can be pasted.
CLI::App& add_subcommand(CLI::App& app, const std::string& name, const std::string& summary,
                         const std::string& example);

/// Parses, runs the chosen subcommand, prints what went wrong to stderr, returns the exit code.
/// An unknown flag or subcommand is exit 2 with a suggestion.
int run_command_line(int argc, char** argv, const std::string& description,
                     const std::string& version, const std::vector<AddCommand>& commands);

/// FORETRACE_CHECK(condition, "what was expected"): always on; prints the state and exits with 70.
[[noreturn]] void check_failed(const char* condition, const std::string& message, const char* file,
                               int line);
#define FORETRACE_CHECK(condition, message) \
  ((condition) ? void(0) : ::foretrace::check_failed(#condition, (message), __FILE__, __LINE__))

}  // namespace foretrace
