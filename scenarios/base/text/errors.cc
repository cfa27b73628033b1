#include "scenarios/base/text/errors.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "scenarios/base/text/print.h"

namespace foretrace {

void check_failed(const char* condition, const std::string& message, const char* file, int line) {
  print_error("{}:{}: internal check failed: {} ({})\nThis is a bug in foretrace.\n", file, line,
              message, condition);
  std::fflush(nullptr);
  std::_Exit(kOurBug);
}

}  // namespace foretrace
