// A GPU with 10 SMs, and kernels that start on it at given times.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "sim/device/device.h"

namespace foretrace::sim {
using namespace literals;

/// Notes when its kernel began and ended.
struct Owner final : KernelOwner {
  explicit Owner(Engine& on) : engine{on} {}
  void kernel_began() override { began = to_us(engine.now().time_since_epoch()); }
  void kernel_ended() override { ended = to_us(engine.now().time_since_epoch()); }
  Engine& engine;
  double began = -1, ended = -1;
};

/// `blocks` tiles of 10 us each.
inline cost::KernelCost product(std::uint32_t blocks, bool stays) {
  cost::KernelCost cost;
  cost.waves.block_time = 10_us;
  cost.alone = 10_us * ((blocks + 9) / 10);
  cost.sms = std::min(blocks, 10U);
  cost.waves.blocks = blocks;
  cost.waves.keeps_its_sms = stays;
  return cost;
}

/// Starts kernels at given times.
struct Starts final : Handler {
  struct One {
    Owner* owner;
    cost::KernelCost cost;
    int priority;
    bool in_graph;
  };
  Starts(Engine& on, Device& of) : engine{on}, device{of} {}
  void at(Duration time, Owner& owner, const cost::KernelCost& cost, int priority = 0,
          bool in_graph = false) {
    engine.queue().at(TimePoint{time}, *this, kernels.size());
    kernels.push_back({&owner, cost, priority, in_graph});
  }
  void fire(std::uint64_t which) override {
    const One& one = kernels[which];
    device.start(*one.owner, one.cost, one.priority, one.in_graph);
  }
  Engine& engine;
  Device& device;
  std::vector<One> kernels;
};

struct BlocksOfKernels : testing::Test {
  Engine engine;
  Device device{engine, {.sms = 10, .hbm_bytes_per_second = 1e12}};
  Starts starts{engine, device};
  Owner large{engine}, small{engine}, next{engine};
};

}  // namespace foretrace::sim
