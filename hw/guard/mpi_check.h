// Turns MPI error codes into exceptions that name the call site.
#pragma once

#include <mpi.h>

#include <array>
#include <stdexcept>
#include <string>

#include "hw/guard/call_site.h"

namespace foretrace::hw {

/// An MPI call failed. what() holds the call site and MPI's text.
class MpiError : public std::runtime_error {
 public:
  MpiError(int code, const CallSite& where)
      : std::runtime_error{where.text() + ": MPI: " + text_of(code)} {}

 private:
  static std::string text_of(int code) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    return {text.data(), static_cast<std::size_t>(length)};
  }
};

inline void mpi_check(int code, CallSite where = CallSite::current()) {
  if (code != MPI_SUCCESS) throw MpiError{code, where};
}

}  // namespace foretrace::hw
