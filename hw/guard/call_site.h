// Where a checked call stands: std::source_location, which clang 14 does not have.
#pragma once

#include <string>

namespace foretrace::hw {

struct CallSite {
  const char* file;
  int line;

  /// As the default of a parameter: the place of the function's call.
  static constexpr CallSite current(const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
    return {file, line};
  }
  std::string text() const { return std::string{file} + ":" + std::to_string(line); }
};

}  // namespace foretrace::hw
