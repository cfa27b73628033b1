// What the words and numbers of a trace's events mean, whatever PyTorch wrote them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reports/capture/capture.h"

namespace foretrace::capture {

/// Microseconds with a fraction, as written: a double has lost the nanoseconds of today's clocks.
bool to_ns(std::string_view text, std::int64_t& ns);

/// Of a category and a name; none for events that are not kept. "Kernel", "Runtime", "Memcpy" and
/// "Operator" are PyTorch 1.8 to 1.11's, xpu_* Intel's, mtia_* Meta's; AMD's are called CUDA's.
std::optional<EventKind> kind_of_event(std::string_view category, std::string_view name);

/// What CUPTI says of a synchronisation.
bool is_sync_detail(std::string_view category);

/// What the host did besides: operators, marks, Python's functions.
bool is_of_host(std::string_view category);

/// "25738" and "stream 7" as 25738 and 7, as older profilers write them; any other word as a number
/// of its own, below 0.
std::int64_t lane_number(std::string_view text);

/// At most 60 characters, for messages.
std::string shortened(std::string_view text);

}  // namespace foretrace::capture
