// What the tests on a real GPU share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "hw/run/process_run.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

/// Why there are fewer than `count` GPUs; empty when there are enough.
std::string lacks_gpus(int count);

/// A ProcessRun of one process that fails the test when it hangs.
class TestRun {
 public:
  explicit TestRun(const Program& program);
  ProcessRun* operator->() { return &run_; }
  ProcessRun& operator*() { return run_; }

 private:
  Processes alone_;
  ProcessRun run_;
};

}  // namespace foretrace::hw

/// Missing hardware is skipped, with the reason, and never passed.
#define FORETRACE_NEEDS_GPUS(count)                                               \
  if (const std::string why = ::foretrace::hw::lacks_gpus(count); !why.empty()) { \
    GTEST_SKIP() << why;                                                          \
  }                                                                               \
  static_cast<void>(0)
