// Turns MPI error codes into exceptions that name the call site.
#pragma once

#include <mpi.h>

#include <array>
#include <source_location>
#include <stdexcept>
#include <string>

namespace foretrace::hw {

/// An MPI call failed. what() holds the call site and MPI's text.
class MpiError : public std::runtime_error {
 public:
  MpiError(int code, const std::source_location& where)
      : std::runtime_error{std::string{where.file_name()} + ":" + std::to_string(where.line()) +
                           ": MPI: " + text_of(code)} {}

 private:
  static std::string text_of(int code) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    return {text.data(), static_cast<std::size_t>(length)};
  }
};

inline void mpi_check(int code, std::source_location where = std::source_location::current()) {
  if (code != MPI_SUCCESS) throw MpiError{code, where};
}

}  // namespace foretrace::hw
