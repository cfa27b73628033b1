#include "tests/hw/gpu/trace.h"

#include <optional>
#include <utility>

#include "hw/trace/activity_tracer.h"
#include "tests/hw/gpu/gpu.h"

namespace foretrace::hw {
namespace {

std::optional<Span> find_span(const Timeline& timeline, const Program& program,
                              const std::string& label, std::uint16_t part,
                              std::uint64_t instance) {
  for (const OpInfo& info : index_ops(program)) {
    if (info.op->label != label) continue;
    for (const Span& span : timeline.spans) {
      if (span.op == info.op->id.value && span.part == part && span.instance == instance) {
        return span;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Timeline trace(const Program& program) {
  TestRun run{program};
  run->preload();
  ActivityTracer tracer;
  run->pass();
  tracer.collect();
  TracedPass pass = run->traced_pass();
  pass.activities = tracer.collect();
  BuiltSpans built = build_spans(program, pass);
  EXPECT_EQ(built.unattributed, 0U);
  return std::move(built.timeline);
}

Span span_of(const Timeline& timeline, const Program& program, const std::string& label,
             std::uint16_t part, std::uint64_t instance) {
  const auto found = find_span(timeline, program, label, part, instance);
  if (!found) ADD_FAILURE() << "no span of " << label << ", part " << part;
  return found.value_or(Span{});
}

bool has_span(const Timeline& timeline, const Program& program, const std::string& label,
              std::uint16_t part, std::uint64_t instance) {
  return find_span(timeline, program, label, part, instance).has_value();
}

}  // namespace foretrace::hw
