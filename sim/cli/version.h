// What `foretrace --version` prints behind the name.
#pragma once

#include <string>

namespace foretrace {

/// "0.1.0, SimGrid 3.32"
std::string version_text();

}  // namespace foretrace
