#include "sim/made_from.h"

#include <fmt/format.h>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/made_from.h"

namespace foretrace {
namespace {

constexpr const char* kMachineDigest = "machine_digest";

}  // namespace

std::string digest_of_machine(const Machine& machine) {
  std::string text = machine_text(machine);  // of one that is based on another only what differs
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (machine.has(param)) text += fmt::format("{} {}\n", i, machine.get(param).value);
  }
  return digest_of(text);
}

void note_made_from(Origin& origin, const Machine& machine) {
  origin.versions[kMachineDigest] = digest_of_machine(machine);
  origin.versions["build"] = build_id();
}

void check_predicted_on(const Origin& origin, const Machine& machine) {
  const auto was = origin.versions.find(kMachineDigest);
  if (was == origin.versions.end() || was->second == digest_of_machine(machine)) return;
  throw UsageError{
      fmt::format("the timeline was predicted on another '{}' than the one that is here: its file "
                  "changed, or another file has that name\n"
                  "  hint: simulate once more, or --machine FILE",
                  origin.machine)};
}

}  // namespace foretrace
