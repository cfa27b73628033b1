// PyTorch's host time per call instead of CUDA's.
#include "models/machine/frontend.h"

#include <gtest/gtest.h>

#include "scenarios/base/text/errors.h"
#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

Machine pytorch_machine() {
  Machine machine = unit_machine();
  const auto set = [&](Param param, double seconds) {
    ParamValue value;
    value.value = seconds;
    machine.set(param, value);
  };
  set(Param::PytorchLaunchKernel, 10e-6);
  set(Param::PytorchEventRecord, 20e-6);
  set(Param::PytorchCollective, 100e-6);
  return through_frontend(std::move(machine), Frontend::PyTorch);
}

TEST(PyTorch, TakesItsOwnHostTimeForEachCall) {
  const Timeline t = predict(R"(
streams: {s: {flags: non_blocking}}
events: {e: {}}
threads:
  main:
    - spin: {id: kernel, stream: s, duration: 1us}
    - event_record: {id: record, event: e, stream: s}
)",
                             pytorch_machine());
  EXPECT_EQ(host_us(t, "kernel"), 10);
  EXPECT_EQ(host_us(t, "record"), 20);
}

TEST(PyTorch, CallsWhatACollectiveConsistsOfFromCpp) {
  const Timeline t = predict(R"(
processes: 2
process_groups: {world: {ranks: all, init: eager}}
buffers: {x: {memory: device, size: 1MB}}
threads:
  main:
    - region: {name: call, ops: [all_reduce: {group: world, buffer: x, type: float32, op: sum}]}
)",
                             pytorch_machine());
  EXPECT_GE(region_us(t, "call"), 100) << "the call itself is Python's";
  EXPECT_LT(region_us(t, "call"), 120) << "its event records are not: 20 us each";
}

TEST(PyTorch, IsRefusedWhereItWasNotMeasured) {
  EXPECT_THROW(through_frontend(Machine{}, Frontend::PyTorch), UsageError);
  EXPECT_THROW(parse_frontend("jax"), UsageError);
}

}  // namespace
}  // namespace foretrace::test
