// Programs for tests, from scenario text.
#pragma once

#include <string>

#include "scenarios/program/program.h"

namespace foretrace::hw {

/// Reads a scenario; `body` is everything after schema_version and name. A mistake in it fails the
/// test with the rendered diagnostics.
Program program_of(const std::string& body, const std::string& name = "test");

/// The first operation of this kind, by its scenario word.
const Op& find_op(const Program& program, const std::string& kind);

}  // namespace foretrace::hw
