#include "sim/cli/version.h"

#include <fmt/format.h>

#include "sim/engine/simgrid_compat.h"

namespace foretrace {

std::string version_text() {
  return fmt::format("{}, SimGrid {}.{}", FORETRACE_VERSION, SIMGRID_VERSION / 10000,
                     SIMGRID_VERSION / 100 % 100);
}

}  // namespace foretrace
