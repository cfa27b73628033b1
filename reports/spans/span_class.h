// What a span is to a reader: the few kinds that colours, categories and trace formats tell apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reports/timeline/timeline.h"

namespace foretrace {

enum class SpanClass : std::uint8_t {
  HostWork,
  HostCall,
  HostWait,
  Kernel,
  Copy,
  Nccl,
  Order,
  Waiting,  ///< from here: of requests, and of the iterations of the engine that serves them
  Prefill,
  Decode,
  Preempted
};
inline constexpr std::uint8_t kSpanClasses = 11;

/// Order: events recorded and waited for on a stream. HostWait: calls that return when a device,
/// another thread or another process is done.
SpanClass class_of(const OpRow& op, const Lane& lane);

/// "kernel", "host-call", ...: CSS class, trace category.
std::string_view name_of(SpanClass span_class);

/// "memcpy_async h2d"; the kind alone without a label.
std::string title_of(const OpRow& op);

/// "process 1 / device 0 / compute"
std::string full_name(const Lane& lane);

}  // namespace foretrace
