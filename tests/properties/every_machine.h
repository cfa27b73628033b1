// All machines that there are, and short programs for them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/machine/machine.h"

namespace foretrace::test {

/// One of each GPU of the catalogue as it is sold, some with other links and networks, clouds and
/// the names of machine files. Read once.
const std::vector<Machine>& every_machine();

/// Of a node of it, at most two.
std::uint32_t few_ranks(const Machine& machine);

/// A chain of products of each type; bfloat16 where the GPU has it.
std::string chains_of_gemms(const Machine& machine);
/// A region for each thing that a fact bounds: `gemm`, `memory`, and with two ranks `all_reduce`.
std::string bounded_regions(std::uint32_t ranks);
/// A step of a small GPT; `precision` is its map's entries.
std::string small_training_step(std::uint32_t ranks, const std::string& precision);

/// What `one` says of each machine, in forked children: its text, or "refused: " and why.
using Asked = std::function<std::string(const Machine&)>;
std::vector<std::string> answers_of(const Asked& one);

/// The longest execution of each region, "name 1.5e-3\n", as `foretrace simulate` predicts it.
/// Throws UsageError where it refuses.
std::string times_on(const std::string& text, const Machine& machine);

/// Of times_on's text; 0 where no region has that name.
double time_in(const std::string& times, const std::string& region);

}  // namespace foretrace::test
