// The timeline of one program on a real GPU, for tests that look at its spans.
#pragma once

#include <string>

#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

/// Of a traced pass after a warm-up one. Every device activity must have its operation.
Timeline trace(const Program& program);

/// The span of the operation with this label; part 0 is the host's call.
Span span_of(const Timeline& timeline, const Program& program, const std::string& label,
             std::uint16_t part, std::uint64_t instance = 0);
bool has_span(const Timeline& timeline, const Program& program, const std::string& label,
              std::uint16_t part, std::uint64_t instance = 0);

}  // namespace foretrace::hw
