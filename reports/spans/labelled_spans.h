// The spans of a timeline that belong to a label of the scenario, as expectations look at them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace {

struct Interval {
  std::int64_t begin_ns, end_ns;
};

enum class SpanSide { Host, Device };

std::vector<const Span*> spans_of(const Timeline& timeline, const std::string& label,
                                  SpanSide side);

std::uint32_t process_of(const Timeline& timeline, const Span& span);

/// One execution of an operation: from its first span's begin to its last span's end.
struct LabelledExecution {
  std::uint32_t process{}, device{};  ///< kNoDevice: of the host
  std::uint64_t instance{};
  Interval interval{};
};

std::vector<LabelledExecution> executions_of(const Timeline& timeline, const std::string& label,
                                             SpanSide side);
/// On the device where the operation has spans there, else its host calls.
std::vector<LabelledExecution> executions_of(const Timeline& timeline, const std::string& label);

/// Those of `all` that belong to `one`: with its process and instance; or all of its process (of
/// all processes, when it runs in others) when they have one instance only.
std::vector<LabelledExecution> matching(const std::vector<LabelledExecution>& all,
                                        const LabelledExecution& one);

}  // namespace foretrace
