// The only way to the terminal. A closed or full stdout or stderr never ends a program: what could
// not be printed is remembered, and the command line turns a lost stdout into its exit code. A test
// refuses any other way (tests/layering).
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace foretrace {

/// Opens what is closed of stdin, stdout and stderr, for reading only: no file that is opened later
/// gets its number, and writing to it fails. Ignores SIGPIPE and SIGXFSZ: a reader that left and a
/// file that may not grow are failed writes.
void secure_standard_streams();

void print_text(std::string_view text);        ///< to stdout
void print_error_text(std::string_view text);  ///< to stderr, after what stdout has so far

template <class... T>
void print_out(fmt::format_string<T...> format, T&&... values) {
  print_text(fmt::format(format, std::forward<T>(values)...));
}
template <class... T>
void print_error(fmt::format_string<T...> format, T&&... values) {
  print_error_text(fmt::format(format, std::forward<T>(values)...));
}

/// Flushes stdout. 0, or the errno of the first text that stdout did not take.
int lost_output();

}  // namespace foretrace
