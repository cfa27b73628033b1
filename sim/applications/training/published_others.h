// Published steps of frameworks whose calls are not expanded: read as the nearest one's that are,
// which the answer says. And which machine stands for a line's GPUs and network.
#pragma once

#include <string>

#include "scenarios/base/text/csv.h"
#include "scenarios/training_step/description.h"

namespace foretrace::sim {

/// "PyTorch's eager calls"; empty for lines whose own framework is expanded.
std::string read_as(const CsvLine& line);

/// Fills what the model and the layout say. Returns why the step is not expanded; else nothing.
std::string describe_other(const CsvLine& line, training::TrainingStep& step);

/// "4xH200-SXM+ib-ndr:8", composed of parts. Empty where no part is of its GPU, or where it has
/// several nodes and no part is of the network between them.
/// GPUs that NVLink joins: a node's, or of a rack of 72 as many as share its run evenly.
std::int64_t gpus_together(const CsvLine& line);

/// Whether the table says nothing of what stands between nodes: the maker's own network is taken.
bool takes_makers_network(const CsvLine& line);

std::string composed_of(const CsvLine& line);

}  // namespace foretrace::sim
