// Another host in a machine: what `foretrace-hw host` measured there, or a part of
// models/machines/hosts.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "models/machine/machine.h"
#include "models/machine/parts/part.h"

namespace foretrace {

struct TakenHost {
  std::size_t parameters = 0;  ///< that its file gives
  /// What a call of CUDA takes there, over what it takes on the machine's own host; none where the
  /// file does not say what a launch takes.
  std::optional<double> calls;
};

/// What happened to one parameter: its value before (none: the machine had it not) and after.
using ParamChanged = std::function<void(Param, std::optional<double>, double)>;

/// Puts `host` into the machine. Its parameters go before the machine's. Calls that it does not
/// give take longer or shorter as its launches do: with that one factor programs were predicted
/// twice as well as without (known-host of blind rounds 29 to 38). Where the file gives parameters
/// of a class, its band is that of known hosts (`blind.*_known`), if the machine has such.
TakenHost take_host_part(Machine& machine, const Part& host, const ParamChanged& changed);

/// "INTEL(R) ..., 16 cores (host.yaml): 25 parameters; its calls take 0.93 times as long"
std::string describe(const TakenHost& taken, const Part& host, const std::string& file);

}  // namespace foretrace
