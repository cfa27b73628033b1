// Turns NCCL error codes into exceptions that name the call site.
#pragma once

#include <nccl.h>

#include <stdexcept>
#include <string>

#include "hw/guard/call_site.h"

namespace foretrace::hw {

/// An NCCL call failed. what() holds the call site, the code's text and NCCL's last message.
class NcclError : public std::runtime_error {
 public:
  NcclError(ncclResult_t code, const CallSite& where)
      : std::runtime_error{where.text() + ": " + ncclGetErrorString(code) + " (" +
                           ncclGetLastError(nullptr) + ")"} {}
};

inline void nccl_check(ncclResult_t code, CallSite where = CallSite::current()) {
  if (code != ncclSuccess) throw NcclError{code, where};
}

}  // namespace foretrace::hw
