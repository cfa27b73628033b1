#include "hw/emulated/launch.h"

#include <cstring>

#include "hw/emulated/handles.h"
#include "hw/emulated/values.h"

namespace foretrace::emulated {

int launch(const Launch& l) {
  const LibraryTime time;
  note_launch(l.name, l.arguments);
  Place place = on(stream_of(l.stream));
  place.name = name_index(l.name);
  std::string more;
  if (l.cooperative) more += R"(,"co":true)";
  if (l.compiled_late) more += R"(,"jit":true)";
  if (l.cluster.x > 0) more += format(R"(,"cl":[%u,%u,%u])", l.cluster.x, l.cluster.y, l.cluster.z);
  record(
      time,
      format(R"("k":"launch","n":%u,"g3":[%u,%u,%u],"b3":[%u,%u,%u],"sm":%zu%s)", place.name,
             l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y, l.block.z, l.shared, more.c_str()),
      place);
  return kSuccess;
}

void read_attributes(Launch& l, const LaunchAttribute* attributes, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (attributes[i].id == kAttributeCluster)
      std::memcpy(&l.cluster, attributes[i].value, sizeof l.cluster);
    if (attributes[i].id == kAttributeCooperative) {
      int on = 0;
      std::memcpy(&on, attributes[i].value, sizeof on);
      l.cooperative = on != 0;
    }
  }
}

}  // namespace foretrace::emulated
