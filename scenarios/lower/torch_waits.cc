// Who waits in torch: work_wait, work_is_completed, and reading a value.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/lower/syntax.h"

namespace foretrace {
namespace {

constexpr std::int64_t kDefaultPoll = 1'000'000'000;  // 1 ms in ps, as PyTorch (10 ms in 2.0)

// ---- works --------------------------------------------------------------------------------------

EventRef work_waited_for(OpFields& fields) {
  if (fields.map().has("work")) {
    fields.reader().works_waited_for.push_back(fields.where("work"));
  }
  return fields.work();
}

/// Without an id the call is named after its work.
std::string label_of_wait(OpFields& fields, const Lowering& out) {
  return out.label().empty() ? work_name(fields.where("work")) : out.label();
}

void read_work_wait(OpFields& fields, Lowering& out) {
  MapReader& map = fields.map();
  const EventRef work = work_waited_for(fields);
  std::string label = label_of_wait(fields, out);
  const YamlNode* poll = map.optional("poll");
  const YamlNode* stream = map.has("stream") ? &fields.where("stream") : nullptr;
  StreamRef current = fields.stream();
  if (!map.has("timeout")) {
    static_cast<void>(map.optional("timeout"));
    if (poll != nullptr) {
      fields.reader().problems.error(*poll, "'poll' belongs to a wait with a timeout",
                                     "without one the stream waits, and the host does not");
    }
    out.add(StreamWaitEvent{std::move(current), work}, std::move(label));
    return;
  }
  if (stream != nullptr) {
    fields.reader().problems.error(*stream, "with a timeout the host waits, and no stream");
  }
  DurationExpr every{Expr{kDefaultPoll}};
  if (poll != nullptr) every = fields.duration("poll");
  out.add(EventWaitFor{work, fields.duration("timeout"), std::move(every)}, std::move(label));
}

void read_work_is_completed(OpFields& fields, Lowering& out) {
  out.add(EventQuery{work_waited_for(fields)}, out.label());
}

// ---- reading a value ----------------------------------------------------------------------------

void read_scalar(OpFields& fields, Lowering& out) {
  const StreamRef stream = fields.stream();
  const BufferRef src = fields.buffer("src", kDeviceMemory);
  fields.require_capacity(src, Expr{kScalarBytes}, "src");
  add_read_scalar(fields.program(), stream, src, out);
}

constexpr std::array kTorchWaits{
    LoweredSyntax{"work_wait", "work [stream] [timeout] [poll]",
                  "torch: the current stream waits for a work; with a timeout the host does",
                  read_work_wait},
    LoweredSyntax{"work_is_completed", "work", "torch: asks whether a work is done",
                  read_work_is_completed},
    LoweredSyntax{"read_scalar", "src [stream]",
                  "tensor.item(): a copy of 4 B to pageable memory and stream_synchronize",
                  read_scalar},
};

}  // namespace

std::span<const LoweredSyntax> torch_waits() { return kTorchWaits; }

}  // namespace foretrace
