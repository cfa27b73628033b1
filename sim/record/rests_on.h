// What an answer rests on: how much of the GPUs' time is made of numbers that nobody measured.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"

namespace foretrace {

struct AssumedPart {
  Param param{};
  double share = 0;  ///< of the time that is looked at
};

/// Shares of the GPUs' time; of a program without work on a GPU, of the host's calls.
struct RestsOn {
  bool on_gpus = true;
  double assumed = 0;  ///< rests on parameters that nobody measured
  double priced = 0;   ///< is NCCL's own price, where the machine has no times
  std::vector<AssumedPart> parameters;  ///< the assumed ones, the largest first
};

/// A parameter counts where it decides a tenth of a span, or more.
RestsOn rests_of(const Timeline& predicted, const Machine& machine);

/// "note: 61 % of the GPUs' time rests on assumed parameters: nccl.port_share 40 % (as
/// h100-nvswitch-8), ...\n" where it is more than a fifth, and a line where NCCL's own prices stand
/// in for times that the machine has not. Empty where there is nothing to say.
std::string rests_text(const RestsOn& rests, const Machine& machine);
/// {"of": "the GPUs' time", "assumed": 0.61, "priced": 0, "parameters": [...]}, all of them.
nlohmann::ordered_json rests_json(const RestsOn& rests, const Machine& machine);

/// rests_text() of rests_of().
std::string rests_on(const Timeline& predicted, const Machine& machine);

/// As a child sends it (engine/children.h), and back: all of `numbers`.
std::vector<double> numbers_of(const RestsOn& rests);
RestsOn rests_from(std::span<const double> numbers);

}  // namespace foretrace
