// libFuzzer's entry; the reader is the one that the environment variable FORETRACE_FUZZ names.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/readers.h"

namespace {

const foretrace::fuzz::FuzzedReader* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const name = std::getenv("FORETRACE_FUZZ");
  chosen = foretrace::fuzz::find_reader(name == nullptr ? "" : name);
  if (chosen != nullptr) return 0;
  std::fputs("FORETRACE_FUZZ names the reader:", stderr);
  for (const auto& reader : foretrace::fuzz::readers()) {
    std::fprintf(stderr, " %.*s", static_cast<int>(reader.name.size()), reader.name.data());
  }
  std::fputs("\n", stderr);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->read({reinterpret_cast<const char*>(data), size});
  return 0;
}
