// The host file: a part of composed machines (models/machines/hosts) with what was measured.
#pragma once

#include <string>
#include <vector>

#include "hw/host/probe.h"
#include "hw/host/system.h"

namespace foretrace::hw {

struct HostFile {
  HostSystem system;
  std::string gpu;     ///< whose driver was asked; empty: none
  std::string driver;  ///< its version
  std::string date;    ///< "2026-11-29"
  std::vector<Measured> measured;
};

/// Facts of the system, parameters of machines with their spreads, and other quantities for people.
/// What could not be measured is left out.
std::string host_file_text(const HostFile& file);

/// Whether a machine has a parameter of this name: "host.touch_bandwidth", no words.
bool is_parameter(const Quantity& quantity);

}  // namespace foretrace::hw
