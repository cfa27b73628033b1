// Random programs, as scenario text, that are valid and come to an end: host threads, streams of
// all kinds, events, copies of all kinds, host functions, graphs, loops, NCCL.
//
// They end because the steps are written in one order in which they can run: whoever waits, waits
// for something that stands before it, and each signal is given once. A host function that waits is
// released by the same thread, which does nothing that blocks in between. They have no data races:
// every stream has buffers of its own.
#pragma once

#include <string>

#include "tests/properties/choices.h"

namespace foretrace::test {

struct ProgramShape {
  std::uint32_t processes = 1;     ///< 2: with NCCL between them, one device each
  std::uint32_t most_devices = 2;  ///< exactly so many where `all_devices`
  bool all_devices = false;
  bool one_stream = false;      ///< one thread and one stream: nothing competes with anything
  bool forgets_signal = false;  ///< one signal is never given: never ends
};

/// Scenario text with name `name`. Below 64 MiB of memory, and a few milliseconds at most.
std::string random_program(Choices choices, const ProgramShape& shape, const std::string& name);

}  // namespace foretrace::test
