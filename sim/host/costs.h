// What calls and kernels take, remembered: a program makes the same ones again and again, and a
// cost function reads a dozen parameters.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "models/cost/host.h"
#include "models/cost/kernel.h"
#include "models/cost/library.h"

namespace foretrace::sim {

class Costs {
 public:
  explicit Costs(const Machine& machine) : machine_{machine} {}

  /// cost::call_time().
  Duration of(const cost::Call& call) {
    Known& known = calls_[place_of(call)];
    if (!known.is_known || known.call != call) {
      Reading read{machine_};
      known = {call, cost::call_time(read, call), true};
    }
    return known.time;
  }
  const cost::KernelCost& of(const cost::Product& product) {
    return of(products_, product, cost::gemm_cost);
  }
  const cost::KernelCost& of(const cost::LibraryWork& work) {
    return of(library_, work, cost::library_cost);
  }
  Duration of(const cost::FrameworkCalls& calls) {
    return of(framework_, calls, cost::framework_time);
  }
  /// cost::cached_eighths() of a product's two operands.
  int cached_eighths(std::span<const cost::Pass> operands) {
    std::array<double, 4> of{};
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < of.size(); ++i) {
      const cost::Pass& pass = operands[i / 2];
      of[i] = i % 2 == 0 ? pass.bytes : pass.distance;
      bits = (bits ^ std::bit_cast<std::uint64_t>(of[i])) * 0x9e3779b97f4a7c15U;
    }
    Eighths& known = eighths_[bits >> (64 - std::bit_width(eighths_.size() - 1))];
    if (known.eighths < 0 || known.of != of) {
      Reading read{machine_};
      known = {of, cost::cached_eighths(read, operands)};
    }
    return known.eighths;
  }

 private:
  struct Known {
    cost::Call call;
    Duration time{};
    bool is_known = false;
  };
  struct Eighths {
    std::array<double, 4> of{};
    int eighths = -1;  ///< not known
  };
  /// Calls that differ may share a place: the later one takes it.
  static std::size_t place_of(const cost::Call& call) {
    constexpr std::size_t kOdd = 37;
    const std::size_t circumstances = call.is_captured + 2 * call.is_inner + 4 * call.is_first +
                                      8 * call.switches_device + 16 * call.finds_later_work;
    return (static_cast<std::size_t>(call.param) * kOdd + circumstances) % kPlaces;
  }
  template <class Work, class Cost>
  const Cost& of(std::map<Work, Cost>& costs, const Work& work,
                 Cost (*cost_of)(Reading&, const Work&)) {
    const auto [known, is_new] = costs.try_emplace(work);
    if (is_new) {
      Reading read{machine_};
      known->second = cost_of(read, work);
    }
    return known->second;
  }

  static constexpr std::size_t kPlaces = 256;
  const Machine& machine_;
  std::array<Known, kPlaces> calls_{};
  std::map<cost::Product, cost::KernelCost> products_;
  std::map<cost::LibraryWork, cost::KernelCost> library_;
  std::map<cost::FrameworkCalls, Duration> framework_;
  std::array<Eighths, 1024> eighths_;  ///< the ranks of a program ask the same
};

}  // namespace foretrace::sim
