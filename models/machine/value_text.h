// A parameter's value as text, in a machine file or on a command line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/machine/machine.h"
#include "scenarios/base/values/unit.h"

namespace foretrace {

/// "450 GB/s", "3.2us", "49.5 TFLOP/s", "371/450": in SI base units.
Parsed<double> parse_value(std::string_view text, ParamUnit unit);

/// What is wrong with a value that no machine has; none where one may have it.
std::optional<std::string> out_of_range(Param param, double value);
/// Of things that there are a whole number of.
bool is_counted(Param param);

/// The text that parse_value reads back, five digits of it.
std::string value_text(double value, ParamUnit unit);

}  // namespace foretrace
