#pragma once
// A launch, whichever function asked for it.
#include <cstdint>

#include "hw/emulated/abi.h"
#include "hw/emulated/record.h"

namespace foretrace::emulated {

struct Launch {
  const char* name;  // mangled
  Dim3 grid, block;
  size_t shared;
  void* stream;
  void** arguments;
  bool cooperative = false, compiled_late = false;
  Dim3 cluster = {0, 0, 0};  // 0: none asked for
};

// Always succeeds: returns 0.
int launch(const Launch& launch);

// Reads a launch's attributes into it.
void read_attributes(Launch& launch, const LaunchAttribute* attributes, unsigned count);

}  // namespace foretrace::emulated
