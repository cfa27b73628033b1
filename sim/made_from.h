// What a predicted timeline was made from: the machine, and the program's build.
#pragma once

#include <string>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"

namespace foretrace {

/// Of all that the machine says: one whose file, or whose base, was edited has another one.
std::string digest_of_machine(const Machine& machine);

/// Throws UsageError where a timeline was predicted on another machine of the name than `machine`.
void check_predicted_on(const Origin& origin, const Machine& machine);

/// What a predicted timeline is to remember: the machine and the program's build.
void note_made_from(Origin& origin, const Machine& machine);

}  // namespace foretrace
