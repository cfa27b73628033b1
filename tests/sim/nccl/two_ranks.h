// The begin of scenarios about one communicator of all processes, on one stream.
#pragma once

#include <string>

namespace foretrace::test {

inline const std::string kOneStream = R"(
streams: {s: {flags: non_blocking}}
communicators: {world: {members: all_devices, init: rank}}
)";
inline const std::string kTwoRanks = kOneStream + R"(
processes: 2
buffers: {x: {memory: device, size: 1MB}}
)";

}  // namespace foretrace::test
