// Turns NCCL error codes into exceptions that name the call site.
#pragma once

#include <nccl.h>

#include <source_location>
#include <stdexcept>
#include <string>

namespace foretrace::hw {

/// An NCCL call failed. what() holds the call site, the code's text and NCCL's last message.
class NcclError : public std::runtime_error {
 public:
  NcclError(ncclResult_t code, const std::source_location& where)
      : std::runtime_error{std::string{where.file_name()} + ":" + std::to_string(where.line()) +
                           ": " + ncclGetErrorString(code) + " (" + ncclGetLastError(nullptr) +
                           ")"} {}
};

inline void nccl_check(ncclResult_t code,
                       std::source_location where = std::source_location::current()) {
  if (code != ncclSuccess) throw NcclError{code, where};
}

}  // namespace foretrace::hw
