// Quantities in scenario files, models and timelines.
//
// A bare number never crosses a function boundary: time is std::chrono, sizes are Bytes, rates are
// Bandwidth. GB/s is 1e9 bytes per second, as nccl-tests prints it; KiB and MiB are powers of two.
#pragma once

#include <chrono>
#include <cmath>
#include <compare>
#include <cstdint>
#include <ratio>

namespace foretrace {

/// Signed picoseconds, 64 bit: +-106 days. Models and simulator compute in it; timelines are
/// rounded to nanoseconds once, when a span is recorded.
using Duration = std::chrono::duration<std::int64_t, std::pico>;

/// A moment on the simulated clock, or a scenario's: picoseconds since the run's start.
struct RunClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<RunClock>;
  static constexpr bool is_steady = true;
};
using TimePoint = RunClock::time_point;

using Nanoseconds = std::chrono::nanoseconds;

/// To the nearest nanosecond, halves away from zero.
constexpr std::int64_t round_to_ns(Duration d) {
  const std::int64_t half = d.count() < 0 ? -500 : 500;
  return (d.count() + half) / 1000;
}

/// Longer times count as so long, 13 days: sums of a few stay in 64 bits, and nothing that is
/// simulated lasts an hour.
inline constexpr Duration kLongestTime{std::int64_t{1} << 60};

/// From real-valued seconds, to the nearest picosecond.
inline Duration seconds_to_duration(double seconds) {
  const double picoseconds = seconds * 1e12;
  constexpr auto kMost = static_cast<double>(kLongestTime.count());
  if (!(picoseconds < kMost)) return kLongestTime;  // not a number, too
  return picoseconds > -kMost ? Duration{std::llround(picoseconds)} : -kLongestTime;
}
constexpr double to_seconds(Duration d) { return static_cast<double>(d.count()) * 1e-12; }
constexpr double to_us(Duration d) { return static_cast<double>(d.count()) * 1e-6; }

struct Bytes {
  std::uint64_t count{};
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
};

class Bandwidth {
 public:
  static constexpr Bandwidth gigabytes_per_second(double value) { return Bandwidth{value * 1e9}; }
  constexpr double bytes_per_second() const { return bytes_per_second_; }
  friend constexpr auto operator<=>(Bandwidth, Bandwidth) = default;

 private:
  explicit constexpr Bandwidth(double bytes_per_second) : bytes_per_second_{bytes_per_second} {}
  double bytes_per_second_;
};

/// Time to move `size` at `rate`, to the nearest picosecond.
inline Duration operator/(Bytes size, Bandwidth rate) {
  return seconds_to_duration(static_cast<double>(size.count) / rate.bytes_per_second());
}

/// Time to move `size` at `bytes_per_second`, to the nearest picosecond.
inline Duration at_rate(Bytes size, double bytes_per_second) {
  return seconds_to_duration(static_cast<double>(size.count) / bytes_per_second);
}

namespace literals {
constexpr Duration operator""_ps(unsigned long long n) {
  return Duration{static_cast<std::int64_t>(n)};
}
constexpr Duration operator""_ns(unsigned long long n) {
  return Duration{static_cast<std::int64_t>(n * 1000)};
}
constexpr Duration operator""_us(unsigned long long n) {
  return Duration{static_cast<std::int64_t>(n * 1'000'000)};
}
constexpr Bytes operator""_B(unsigned long long n) { return {n}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return {n << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return {n << 20}; }
constexpr Bandwidth operator""_GBps(long double v) {
  return Bandwidth::gigabytes_per_second(static_cast<double>(v));
}
}  // namespace literals

}  // namespace foretrace
