#include "reports/export/span_csv.h"

#include <fmt/format.h>

#include <ostream>

#include "reports/export/exported_name.h"
#include "reports/table/text_table.h"
#include "reports/timeline/timeline_keys.h"

namespace foretrace {
namespace {

std::string device_of(const Lane& lane) {
  return lane.device == kNoDevice ? "" : fmt::format("{}", lane.device);
}

std::string name_cell(const std::string& name) { return csv_cell(exported_name(name)); }

}  // namespace

void write_span_csv(std::span<const Timeline* const> timelines, std::ostream& out) {
  out << "origin,op,kind,variant,label,line,instance,part,process,device,lane_kind,lane,begin_ns,"
         "end_ns,size_bytes\n";
  for (const Timeline* timeline : timelines) {
    const char* origin = timeline->origin.measured ? "measured" : "predicted";
    for (const Span& span : timeline->spans) {
      const OpRow& op = timeline->ops[span.op];
      const Lane& lane = timeline->lanes[span.lane];
      out << fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", origin, span.op,
                         csv_cell(op.kind), name_cell(op.variant), name_cell(op.label), op.line,
                         span.instance, span.part, lane.process, device_of(lane),
                         keys::kLaneKinds[static_cast<std::size_t>(lane.kind)],
                         name_cell(lane.name), span.begin_ns, span.end_ns, op.size_bytes);
    }
  }
}

}  // namespace foretrace
