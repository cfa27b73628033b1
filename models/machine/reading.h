// How cost functions look at a machine: through a Reading, which notes every parameter that a
// result is made of. Bands, trust, spread and the sources of a fit follow from these notes, and
// from nothing else.
//
// A cost function is pure and takes a Reading: Duration peer_copy_time(Reading& read, Bytes size).
// What matters is not that a parameter was read but how much of the result it is: 1 GiB through a
// ring reads the fixed part of a kernel's start too, and hardly depends on it. priced() finds that
// out by asking again with one parameter after the other moved a little.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/machine/machine.h"

namespace foretrace {

using ParamSet = std::bitset<kParamCount>;

class Reading {
 public:
  explicit Reading(const Machine& machine) : machine_{&machine} {}
  /// The same machine with `nudged` times `factor`.
  Reading(const Machine& machine, Param nudged, double factor)
      : machine_{&machine}, nudged_{nudged}, factor_{factor} {}

  /// Whether the machine file has it. A parameter that is asked for and not there is no part of the
  /// result.
  bool has(Param param) const { return machine_->has(param); }
  bool takes(Term term) const { return machine_->takes(term); }
  /// In SI base units. Throws UsageError naming the parameter and the machine when it is missing.
  double value(Param param) {
    used_.set(static_cast<std::size_t>(param));
    const double value = machine_->get(param).value;
    return param == nudged_ ? value * factor_ : value;
  }
  Duration time(Param param) {
    if (param == nudged_) return seconds_to_duration(value(param));
    used_.set(static_cast<std::size_t>(param));
    return machine_->time(param);
  }
  double seconds(Param param) { return value(param); }
  /// Bytes/s or flop/s; a share of NVLink's bandwidth multiplied out, so both are parts of it.
  double rate(Param param) {
    const bool share = info(param).unit == ParamUnit::NvlinkShare;
    return share ? value(param) * value(Param::NvlinkBandwidth) : value(param);
  }
  Bytes size(Param param) { return {static_cast<std::uint64_t>(value(param))}; }
  std::uint32_t count(Param param) { return static_cast<std::uint32_t>(value(param)); }
  /// What a host call takes: as its frontend makes it (Machine::call_time).
  Duration call_time(Param param) {
    used_.set(static_cast<std::size_t>(param));
    const Duration time = machine_->call_time(param);
    return param == nudged_ ? seconds_to_duration(to_seconds(time) * factor_) : time;
  }

  /// What is no parameter: NCCL's version, nodes, GPUs.
  const Machine& machine() const { return *machine_; }
  const ParamSet& used() const { return used_; }

 private:
  const Machine* machine_;
  Param nudged_ = static_cast<Param>(kParamCount);  ///< that value: none
  double factor_ = 1;
  ParamSet used_;
};

/// How much of a result a parameter is: d log(result) / d log(parameter). A time that is a fixed
/// part and bytes over a rate has shares of +0.2 and -0.8, say.
struct Share {
  Param param{};
  double share{};
};

/// A parameter decides a result when a tenth of it, or more, is its doing.
inline constexpr double kDecidingShare = 0.1;

/// The shares of each of several times that `seconds_of(Reading&)` returns together, the largest
/// first; those below a thousandth are left out. One call for each parameter that it reads, and one
/// more.
template <std::invocable<Reading&> SecondsOf>
std::vector<std::vector<Share>> shares_of_each(const Machine& machine,
                                               const SecondsOf& seconds_of) {
  constexpr double kNudge = 1.001;  // small beside any spread, large beside a picosecond
  constexpr double kLeast = 1e-3;
  Reading plain{machine};
  const auto seconds = seconds_of(plain);
  std::vector<std::vector<Share>> shares(seconds.size());
  if (std::ranges::none_of(seconds, [](double one) { return one > 0; })) return shares;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    if (!plain.used().test(i)) continue;
    const auto param = static_cast<Param>(i);
    Reading nudged{machine, param, kNudge};
    const auto moved = seconds_of(nudged);
    for (std::size_t k = 0; k < shares.size(); ++k) {
      if (!(seconds[k] > 0)) continue;
      const double share = std::log(moved[k] / seconds[k]) / std::log(kNudge);
      if (std::abs(share) >= kLeast) shares[k].push_back({param, share});
    }
  }
  for (std::vector<Share>& of_one : shares) {
    std::ranges::sort(of_one, [](const Share& a, const Share& b) {
      return std::abs(a.share) > std::abs(b.share);
    });
  }
  return shares;
}

/// The same of the one time that `seconds_of(Reading&)` returns.
template <std::invocable<Reading&> SecondsOf>
std::vector<Share> shares_of(const Machine& machine, const SecondsOf& seconds_of) {
  return std::move(shares_of_each(machine, [&](Reading& read) {
                     return std::array<double, 1>{seconds_of(read)};
                   }).front());
}

}  // namespace foretrace
