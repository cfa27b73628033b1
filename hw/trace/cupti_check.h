// Turns CUPTI error codes into exceptions that name the call site.
#pragma once

#include <cupti.h>

#include <source_location>
#include <stdexcept>
#include <string>

namespace foretrace::hw {

/// A CUPTI call failed. what() holds the call site and CUPTI's text.
class CuptiError : public std::runtime_error {
 public:
  CuptiError(CUptiResult code, const std::source_location& where)
      : std::runtime_error{std::string{where.file_name()} + ":" + std::to_string(where.line()) +
                           ": CUPTI: " + text_of(code)} {}

  static std::string text_of(CUptiResult code) {
    const char* text = nullptr;
    cuptiGetResultString(code, &text);
    return text == nullptr ? "error " + std::to_string(static_cast<int>(code)) : text;
  }
};

inline void cupti_check(CUptiResult code,
                        std::source_location where = std::source_location::current()) {
  if (code != CUPTI_SUCCESS) throw CuptiError{code, where};
}

}  // namespace foretrace::hw
