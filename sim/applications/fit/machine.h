// A machine to start a fit from where there is none for this GPU yet.
#pragma once

#include <filesystem>
#include <string>

#include "models/machine/machine.h"

namespace foretrace {

/// The shipped machine whose values a new one begins with.
inline constexpr const char* kFirstGuess = "h200-nvswitch-8";

/// All parameters as in the shipped machine of the same GPU and as many of them, else of the same
/// GPU, else as in kFirstGuess, as assumptions; those of the same GPU with how much machines of its
/// kind differ, and how far programs were off on it (blind.*). And what `environment`
/// (environments/KEY.json of a measurement) says of the machine: GPU, SMs, memory, copy engines,
/// number of GPUs, host memory, NCCL's version, and whether NVLink multicast was switched off.
/// Throws UsageError when the file says nothing of the kind.
Machine new_machine(const std::string& name, const std::filesystem::path& environment);
/// The same of an environment's text; `file` is what messages call it.
Machine new_machine(const std::string& name, const std::string& text, const std::string& file);

/// What a new machine has from another one's host becomes that of a host so many times as fast
/// (--with host=): what no calibration determines then goes with the launches that it measured.
/// The sources say so.
void move_to_host(Machine& machine, double factor);

/// How far a fit lets the log of a value go from this first guess, beside kPriorSigma: what a new
/// machine has from a file of its GPU's kind comes with how much such GPUs differ.
double prior_unit(const ParamValue& first_guess);

}  // namespace foretrace
