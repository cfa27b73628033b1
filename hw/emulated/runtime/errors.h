#pragma once
#include "hw/emulated/abi.h"

namespace foretrace::emulated {

// Remembers an error for cudaGetLastError, and gives it back.
int failed(Error error);
// A call that the emulation has no answer for: says on stderr which, once for each, and fails with
// cudaErrorNotSupported.
int unsupported(const char* function);

}  // namespace foretrace::emulated
