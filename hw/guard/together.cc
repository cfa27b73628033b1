#include "hw/guard/together.h"

#include <cstdio>

#include "scenarios/base/text/print.h"

namespace foretrace::hw {

void throw_together(const Processes& processes, const Failure& mine) {
  // The lowest rank with a failure tells the others: -rank, so that largest() finds it.
  const std::int64_t none = -static_cast<std::int64_t>(processes.count());
  const std::int64_t found = processes.largest(
      mine.exit_code == kDone ? none : -static_cast<std::int64_t>(processes.rank()));
  if (found == none) return;
  const auto root = static_cast<int>(-found);
  const auto exit_code =
      static_cast<int>(processes.broadcast(static_cast<std::int64_t>(mine.exit_code), root));
  const std::string text = processes.broadcast(mine.text, root);
  switch (exit_code) {
    case kWrongUse:
      throw UsageError{text};
    case kCannotHere:
      throw CannotHereError{text};
    default:
      throw IoError{text};
  }
}

int end_together(const Processes& processes, const std::string& what, int exit_code) {
  if (processes.rank() == 0) {
    // Rendered diagnostics name their file and end in a newline; a sentence gets both here.
    if (what.ends_with('\n')) {
      print_error("{}", what);
    } else {
      print_error("error: {}\n", what);
    }
    std::fflush(stderr);
  }
  processes.wait_for_all();
  return exit_code;
}

}  // namespace foretrace::hw
