#include "sim/cli/version.h"

#include <fmt/format.h>

namespace foretrace {

std::string version_text() {
  return fmt::format("{}, SimGrid {}", FORETRACE_VERSION, FORETRACE_SIMGRID);
}

}  // namespace foretrace
