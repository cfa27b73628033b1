// Measurements for tests of the fit: simulated on a machine whose parameters are known.
#pragma once

#include <functional>
#include <string>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace::test {

/// The factor of a repetition's time: by region, instance and repetition.
using Noise = std::function<double(const std::string&, std::uint64_t, int)>;

/// +-`width` around 1, the same in every run of the test.
Noise jitter(double width);

/// As a measurement of five repetitions. The simulation runs in a child, since the fit needs this
/// process free of engines.
Timeline measured_on(
    const Program& program, const Machine& machine,
    const Noise& noise = [](const std::string&, std::uint64_t, int) { return 1.0; });

/// A scenario without its schema_version line.
Program program_from(const std::string& text);

/// All parameters of the unit machine, held fixed as a datasheet's.
Machine fixed_machine();
/// A parameter that a fit may change.
void open_parameter(Machine& machine, Param param, double value);

}  // namespace foretrace::test
