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

/// Whether the communicator is a process group's, which has streams of its own.
bool has_stream_of_group(const Program& program, std::string_view communicator);

}  // namespace foretrace
