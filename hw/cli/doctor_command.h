// foretrace-hw doctor: what this machine has and lacks for measuring.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace foretrace::hw {

void add_doctor_command(CLI::App& app, int& exit_code);

/// One line of the doctor's findings.
struct Finding {
  std::string what;  ///< "GPU driver"
  bool good = false;
  bool needed = true;  ///< without it `measure` cannot work at all
  std::string found;   ///< "580.159.04", or what is missing
  std::string advice;  ///< what to do; may be empty
};

std::vector<Finding> examine();
/// True when measure can work.
bool can_measure(const std::vector<Finding>& findings);

}  // namespace foretrace::hw
