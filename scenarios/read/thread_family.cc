#include "scenarios/read/thread_family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace foretrace {

std::vector<ThreadMember> read_members(Reader& reader, MapReader& map, std::size_t most) {
  const YamlNode* each = map.optional("each");
  const YamlNode* count = map.optional("count");
  if (each != nullptr && each->text != "device") {
    reader.problems.error(*each, fmt::format("unknown value of each '{}'", each->text),
                          "known here: device");
  }
  const std::int64_t devices = each == nullptr ? 1 : reader.program.devices;
  const std::int64_t copies =
      count == nullptr ? 1
                       : read_constant(reader, *count, kNumber, 1, static_cast<std::int64_t>(most));
  std::vector<ThreadMember> members;
  for (std::int64_t d = 0; d < devices; ++d) {
    for (std::int64_t k = 0; k < copies; ++k) {
      if (members.size() > most) return members;
      ThreadMember& member = members.emplace_back();
      if (each != nullptr) member.indices.emplace_back("device", d);
      if (count != nullptr) member.indices.emplace_back("index", k);
      std::vector<std::int64_t> numbers;
      for (const auto& [index, number] : member.indices) numbers.push_back(number);
      if (numbers.empty()) continue;
      member.of_thread = fmt::format("({})", fmt::join(numbers, ", "));
      member.of_regions = fmt::format(".{}", fmt::join(numbers, "."));
    }
  }
  return members;
}

}  // namespace foretrace
