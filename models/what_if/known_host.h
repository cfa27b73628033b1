// The host of a captured program or of an engine that serves, where it is known: `python3 -m
// foretrace host` has measured its reference loops.
#pragma once

#include <string>

#include "models/machine/machine.h"

namespace foretrace {

/// Whether the file is one of loops, not of `foretrace-hw host`. Throws UsageError where it cannot
/// be read.
bool has_loops(const std::string& path);

struct KnownHost {
  std::string file;
  double loop_seconds = 0;  ///< PyTorch's reference loop there
  double factor = 1;        ///< PyTorch's host takes so many times what the machine says
  double band = 1;  ///< so many times as uncertain (in logarithms) as an unknown one, in captures
};

/// Reads such a file and changes `machine` by it: what PyTorch's host takes, and how far
/// that may be off
/// (`blind.captured_host_known`). Hosts differ by less than their loops do: by the power
/// `host.loop_power`, which programs showed whose loops were measured beside them. Throws
/// UsageError.
KnownHost take_host(Machine& machine, const std::string& path);

/// "host: as its reference loop in FILE, 17.2 ms (the machine's: 24 ms): its work takes 0.87 times
/// as long"
std::string describe(const KnownHost& host, const Machine& machine);

/// The same where none is known.
std::string describe_typical_host(const Machine& machine);

}  // namespace foretrace
