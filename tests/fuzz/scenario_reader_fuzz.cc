// libFuzzer's entry: any bytes are a scenario or get diagnostics; nothing crashes, nothing hangs.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "scenarios/read/scenario.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto result = foretrace::read_scenario(text, "fuzz.yaml");
  if (!result && (result.error().empty() || render(result.error(), text).empty())) std::abort();
  return 0;
}
