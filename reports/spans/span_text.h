// What a reader is told of one span: for hovering over it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// By side and span: the partner's index in the other timeline, or kNoSpan.
std::vector<std::vector<std::uint32_t>> partners_of(const Timeline& first, const Timeline& second);

/// Several lines: operation, scenario line and loop indices; times; the partner's duration and the
/// signed error when there is one (`begin_ns`: from the run's begin; `is_first`: the span is the
/// one judged, else the reference).
std::string describe_span(const Timeline& timeline, std::uint32_t span, std::int64_t begin_ns,
                          const std::string& side, const Span* partner,
                          const std::string& partner_side, bool is_first);

/// At most `letters`, the last one an ellipsis when something is cut.
std::string shortened(const std::string& text, std::size_t letters);

}  // namespace foretrace
