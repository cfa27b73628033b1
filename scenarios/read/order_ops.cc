#include <fmt/format.h>

#include <array>

#include "scenarios/read/op_fields.h"

namespace foretrace {
namespace {

EventRef timing_event(OpFields& fields, std::string_view key) {
  const EventRef ref = fields.event(key);
  const auto& events = fields.program().events;
  if (fields.is_sound() && ref.first.value < events.size() && !events[ref.first.value].timing) {
    fields.reader().problems.error(
        fields.where(key),
        fmt::format("event '{}' has timing: false and cannot be timed", fields.where(key).text));
  }
  return ref;
}

OpKind read_device_synchronize(OpFields& fields) {
  return DeviceSynchronize{
      fields.number_or("device", 0, 0, std::int64_t{fields.program().devices} - 1)};
}

constexpr std::array kOrderOps{
    OpSyntax{"event_record", "event [stream]", "the event captures the work queued so far",
             [](OpFields& f) -> OpKind {
               return EventRecord{f.event(), f.stream()};
             }},
    OpSyntax{"stream_wait_event", "[stream] event", "later work of the stream waits for the event",
             [](OpFields& f) -> OpKind {
               return StreamWaitEvent{f.stream(), f.event()};
             }},
    OpSyntax{"event_synchronize", "event", "the host thread waits for the event",
             [](OpFields& f) -> OpKind { return EventSynchronize{f.event()}; }},
    OpSyntax{"event_query", "event", "asks whether the event completed",
             [](OpFields& f) -> OpKind { return EventQuery{f.event()}; }},
    OpSyntax{"event_elapsed_time", "start end", "the time between two completed events",
             [](OpFields& f) -> OpKind {
               return EventElapsedTime{timing_event(f, "start"), timing_event(f, "end")};
             }},
    OpSyntax{"event_wait_for", "event timeout poll",
             "polls the event; fails the run after the timeout",
             [](OpFields& f) -> OpKind {
               return EventWaitFor{f.event(), f.duration("timeout"), f.duration("poll")};
             }},
    OpSyntax{"stream_synchronize", "[stream]", "the host thread waits for the stream",
             [](OpFields& f) -> OpKind { return StreamSynchronize{f.stream()}; }},
    OpSyntax{"stream_query", "[stream]", "asks whether the stream is idle",
             [](OpFields& f) -> OpKind { return StreamQuery{f.stream()}; }},
    OpSyntax{"device_synchronize", "[device]", "the host thread waits for all streams of a device, or of each: device: all",
             read_device_synchronize},
};

}  // namespace

std::span<const OpSyntax> order_ops() { return kOrderOps; }

}  // namespace foretrace
