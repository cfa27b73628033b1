// Failing together. A process that throws alone leaves the others waiting in MPI; these functions
// let all members of a group throw the same error, so that every one can end in order.
#pragma once

#include <fmt/format.h>

#include <string>

#include "hw/run/processes.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::hw {

/// What went wrong in one process, to be thrown in all.
struct Failure {
  int exit_code = kDone;  ///< kDone: nothing
  std::string text;
};

/// Runs `body` and catches the errors that all processes can agree on.
template <class Body>
Failure failure_of(Body body) {
  try {
    body();
  } catch (const UsageError& error) {
    return {kWrongUse, error.what()};
  } catch (const CannotHereError& error) {
    return {kCannotHere, error.what()};
  } catch (const IoError& error) {
    return {kBroke, error.what()};
  }
  return {};
}

/// Throws when any member failed: everywhere the failure of the lowest rank that has one.
void throw_together(const Processes& processes, const Failure& mine);

/// Every member runs `body`.
template <class Body>
void together(const Processes& processes, Body body) {
  throw_together(processes, failure_of(body));
}

/// Rank 0 alone runs `body`; all members throw what it throws.
template <class Body>
void at_root(const Processes& processes, Body body) {
  throw_together(processes, processes.rank() == 0 ? failure_of(body) : Failure{});
}

/// For an error that all members agree on, at the end of a command: rank 0 prints it before anyone
/// leaves, since mpirun ends all processes once one has left with an exit code that is not 0.
/// Returns `exit_code`.
int end_together(const Processes& processes, const std::string& what, int exit_code);

}  // namespace foretrace::hw
