#include "scenarios/base/command_line/out_of_memory.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>

#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"

namespace foretrace {
namespace {

std::atomic<bool> was_not_enough{false};
std::terminate_handler before = nullptr;

[[noreturn]] void refuse() {
  was_not_enough = true;
  throw std::bad_alloc{};
}

[[noreturn]] void end() {
  if (was_not_enough) {
    print_error_text("error: not enough memory\n");
    ::_exit(kBroke);
  }
  if (before != nullptr) before();
  std::abort();
}

}  // namespace

// Before the objects are made that are there before main.
[[gnu::constructor(101)]] void tell_when_memory_is_not_enough() {
  if (std::get_new_handler() == refuse) return;
  std::set_new_handler(refuse);
  before = std::set_terminate(end);
}

}  // namespace foretrace
