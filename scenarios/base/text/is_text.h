// Whether bytes are text at all.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/base/text/yaml_reader.h"

namespace foretrace {

/// UTF-8 without control characters; otherwise says in `problems` where it is not. A binary file
/// must not be explained key by key.
bool is_text(std::string_view text, Problems& problems);

/// An error at a byte of the text.
void add_at_offset(std::string_view text, std::size_t offset, Problems& problems,
                   std::string message);

}  // namespace foretrace
