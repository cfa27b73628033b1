// Functions that the emulated GPU has no answer for. Each says its name and fails, and PyTorch
// raises an error where the program asked for it.
#include "hw/emulated/exported.h"
#include "hw/emulated/runtime/errors.h"

#define FORETRACE_REFUSED(function, status)      \
  FORETRACE_EXPORTED int function() {            \
    foretrace::emulated::unsupported(#function); \
    return status;                               \
  }
#include "hw/emulated/refused.def"
