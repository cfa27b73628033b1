// Published steps of Megatron-Core, under NeMo or Megatron-Bridge: what a line of the table says.
#pragma once

#include <string>

#include "scenarios/base/text/csv.h"
#include "scenarios/training_step/description.h"

namespace foretrace::sim {

/// Whether a line is of Megatron-Core; Megatron-LM and Megatron-DeepSpeed are older and other.
bool is_megatron_core(const CsvLine& line);

/// A count; an empty cell is 0. Throws UsageError naming the line where it is none.
/// What its linear layers multiply. Of Transformer Engine scales are delayed, unless it says more.
training::Narrow narrow_of(const CsvLine& line);

std::int64_t whole_number(const CsvLine& line, std::string_view column);

/// Why the layout is not whole; else empty. What the reader of a scenario asks, too.
std::string what_does_not_divide(const training::TrainingStep& step, std::int64_t gpus);

/// Fills what the model and the layout say. Returns why the step is not expanded; else nothing.
std::string describe_megatron(const CsvLine& line, training::TrainingStep& step);

}  // namespace foretrace::sim
