// The operations of a block as text, one a line. Internal to scenarios/.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "scenarios/program/program.h"

namespace foretrace {

/// Appends the operations, each behind "- " and so many spaces. Throws std::logic_error for one
/// that no expansion has.
void append_ops(std::string& text, const Program& program, const Block& block, std::size_t margin);

}  // namespace foretrace
