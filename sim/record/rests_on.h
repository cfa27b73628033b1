// What an answer rests on: how much of the GPUs' time is made of numbers that nobody measured.
#pragma once

#include <string>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"

namespace foretrace {

/// "note: 61 % of the GPUs' time rests on assumed parameters: nccl.port_share 40 % (as
/// h100-nvswitch-8), ...\n" where it is more than a fifth, and a line where NCCL's own prices stand
/// in for times that the machine has not. Of a program without work on a GPU it is the host's
/// calls. A parameter counts where it decides a tenth of a span, or more. Empty where there is
/// nothing to say.
std::string rests_on(const Timeline& predicted, const Machine& machine);

}  // namespace foretrace
