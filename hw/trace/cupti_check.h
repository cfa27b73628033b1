// Turns CUPTI error codes into exceptions that name the call site.
#pragma once

#include <cupti.h>

#include <stdexcept>
#include <string>

#include "hw/guard/call_site.h"

namespace foretrace::hw {

/// A CUPTI call failed. what() holds the call site and CUPTI's text.
class CuptiError : public std::runtime_error {
 public:
  CuptiError(CUptiResult code, const CallSite& where)
      : std::runtime_error{where.text() + ": CUPTI: " + text_of(code)} {}

  static std::string text_of(CUptiResult code) {
    const char* text = nullptr;
    cuptiGetResultString(code, &text);
    return text == nullptr ? "error " + std::to_string(static_cast<int>(code)) : text;
  }
};

inline void cupti_check(CUptiResult code, CallSite where = CallSite::current()) {
  if (code != CUPTI_SUCCESS) throw CuptiError{code, where};
}

}  // namespace foretrace::hw
