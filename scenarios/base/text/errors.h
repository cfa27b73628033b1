// How failures travel: three kinds of exception and a check, each with its exit code.
#pragma once

#include <stdexcept>
#include <string>

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

/// FORETRACE_CHECK(condition, "what was expected"): always on; prints the state and exits with 70.
[[noreturn]] void check_failed(const char* condition, const std::string& message, const char* file,
                               int line);
#define FORETRACE_CHECK(condition, message) \
  ((condition) ? void(0) : ::foretrace::check_failed(#condition, (message), __FILE__, __LINE__))

}  // namespace foretrace
