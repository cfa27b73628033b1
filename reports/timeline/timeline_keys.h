// The words of timeline.json that its writer and its reader share.
#pragma once

#include <array>
#include <string_view>

#include "reports/timeline/timeline.h"

namespace foretrace::keys {

/// By the enumerators' values.
inline constexpr std::array<std::string_view, 3> kLaneKinds{"host_thread", "stream", "request"};
inline constexpr std::array<std::string_view, 4> kFlowKinds{"launch", "record_wait", "send_recv",
                                                            "signal"};
inline constexpr std::array<std::string_view, 4> kParameterClasses{"fit", "datasheet", "published",
                                                                   "assumed"};
inline constexpr std::array<std::string_view, 5> kOutcomes{"completed", "deadlock", "timeout",
                                                           "wrong_data", "failed"};

inline constexpr std::array<std::string_view, 7> kSpanColumns{
    "op", "instance", "lane", "begin_ns", "end_ns", "part", "detail"};
inline constexpr std::array<std::string_view, 5> kMemoryColumns{"process", "device", "at_ns",
                                                                "allocated", "reserved"};
inline constexpr std::array<std::string_view, 4> kMemoryPeakColumns{"process", "device",
                                                                    "allocated", "reserved"};
inline constexpr std::array<std::string_view, 3> kFlowColumns{"from_span", "to_span", "kind"};

}  // namespace foretrace::keys
