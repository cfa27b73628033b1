#include "models/machine/parts/kinds.h"

namespace foretrace {

void take_kind(const Part& gpu, Machine& machine) {
  const std::string kind = gpu.word("kind");
  if (!kind.empty()) read_over(machine, "kinds", kind);
}

}  // namespace foretrace
