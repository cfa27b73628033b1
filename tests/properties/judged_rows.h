// One random program read, checked and simulated, and whether what is said of it agrees.
#pragma once

#include <string>

#include "models/machine/machine.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"

namespace foretrace::test {

/// What `foretrace check` says about a program's end.
enum class Foretold : std::uint8_t { Ends, MayHang, Hangs };

struct JudgedRows {
  Foretold foretold{};
  Outcome::Kind outcome{};
  bool is_refused = false;  ///< the machine lacks what it takes
  std::size_t spans = 0;
  std::size_t violations = 0;  ///< of the order that CUDA's and NCCL's rules demand
  std::pair<double, double> digest;  ///< of the whole timeline

  /// A program that is said to end does, and one that is said to hang never does.
  bool agrees() const {
    if (is_refused || foretold == Foretold::MayHang) return true;
    return (foretold == Foretold::Ends) == (outcome == Outcome::Kind::Completed);
  }
};

/// Simulates `text` in a child process. Prints what it finds wrong to standard error. A text that
/// is no scenario is a mistake of the generator: std::runtime_error.
Job job_of_rows(const std::string& text, const Machine& machine, Fidelity fidelity);
JudgedRows judged(const std::vector<double>& of_child);

}  // namespace foretrace::test
