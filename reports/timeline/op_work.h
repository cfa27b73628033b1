// What one operation works on, as a timeline's rows say it.
#pragma once

#include <string>

#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace {

/// Null for what has no size of its own.
const Expr* work_size(const OpKind& kind);

/// What a record or a wait is about: "ready on compute" where a stream is told to record or to
/// wait, "ready" where the host waits for the event, "compute" where it waits for the stream.
std::string waited_name(const Program& program, const OpKind& kind);

/// What is to be known of an operation that moves bytes or multiplies: data type or way, sizes,
/// shape, ranks. `row.loops` is known.
void set_work(OpRow& row, const Program& program, const OpKind& kind);

/// The scenario's word: "bfloat16".
const char* data_type_name(DataType type);

}  // namespace foretrace
