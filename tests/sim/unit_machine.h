// A machine whose numbers can be added up in the head, and a simulation of a scenario text on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"

namespace foretrace::test {

/// Every host call takes 1 us, a launch reaches an idle stream 1 us after its call, the host wakes
/// 1 us after the device; gaps between the entries of a stream are 0 and events take 0. Copies
/// have no fixed part and move 1 GB/s (1000 bytes per us), 1 GB/s in both directions each; 10 SMs;
/// memory moves 1 GB/s; NVLink 1 GB/s.
Machine unit_machine();

/// Simulates `text` (a scenario without its schema_version and name lines) on `machine`.
/// Once per process, as every simulation. Fails the test when the text is wrong.
Timeline predict(const std::string& text, const Machine& machine = unit_machine());

/// The device spans (part > 0) of the operation labelled `id`, in order of begin.
std::vector<Span> device_spans(const Timeline& timeline, const std::string& id);
/// Its host calls.
std::vector<Span> host_spans(const Timeline& timeline, const std::string& id);
/// The first sample of region `name`, in us.
double region_us(const Timeline& timeline, const std::string& name);

inline double us(std::int64_t ns) { return static_cast<double>(ns) / 1000; }

/// How long the first device span, or the first host call, of `id` is, in us.
inline double device_us(const Timeline& timeline, const std::string& id) {
  const Span span = device_spans(timeline, id).at(0);
  return us(span.end_ns - span.begin_ns);
}
inline double host_us(const Timeline& timeline, const std::string& id) {
  const Span span = host_spans(timeline, id).at(0);
  return us(span.end_ns - span.begin_ns);
}

}  // namespace foretrace::test
