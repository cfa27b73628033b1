#include "sim/engine/load_flows.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/base/text/errors.h"

namespace foretrace::sim {
namespace {

/// Not found by walking up from the program, as data is: what is loaded is run, and above a program
/// in /tmp anybody may write.
std::vector<std::string> places() {
  std::vector<std::string> result{kFlowsFile};  // as the dynamic loader finds it
  if (const char* data = std::getenv("FORETRACE_DATA"); data != nullptr && *data != '\0') {
    const std::filesystem::path prefix = std::filesystem::path{data} / ".." / "..";
    result.push_back((prefix / "lib" / "foretrace" / kFlowsFile).string());
  }
  return result;
}

[[noreturn]] void fail(std::string_view why) {
  throw IoError{
      fmt::format("cannot load {}, which copies and collectives are simulated by: {}\n"
                  "  hint: it is installed in lib/foretrace beside the program's bin; else "
                  "LD_LIBRARY_PATH may name its directory, or FORETRACE_DATA the share/foretrace "
                  "beside its lib",
                  kFlowsFile, why)};
}

const FlowsLibrary& load() {
  (void)make_room_on_the_stack();
  std::string why;
  for (const std::string& place : places()) {
    // Lazily: a quarter less time, since most of what SimGrid's libraries want of each other is
    // never called. Never unloaded: SimGrid lives as long as the process.
    void* const library = ::dlopen(place.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) {
      why += (why.empty() ? "" : "; ") + std::string{::dlerror()};
      continue;
    }
    const auto* symbol = static_cast<const FlowsLibrary* const*>(::dlsym(library, kFlowsSymbol));
    if (symbol == nullptr) fail(fmt::format("{} has no {}", place, kFlowsSymbol));
    if ((*symbol)->version != std::string_view{FORETRACE_VERSION}) {
      fail(fmt::format("it is foretrace {}'s, this is {}", (*symbol)->version, FORETRACE_VERSION));
    }
    return **symbol;
  }
  fail(why);
}

}  // namespace

bool make_room_on_the_stack() noexcept {
  // The main thread's stack grows until the limit of that moment, and Linux keeps 128 MiB free
  // below it.
  constexpr rlim_t kRoom = kRoomOnTheStack;
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kRoom) return true;
  limit.rlim_cur = std::min(kRoom, limit.rlim_max);
  return ::setrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur == kRoom;
}

const FlowsLibrary& load_flows() {
  static const FlowsLibrary& library = load();
  return library;
}

void load_flows_ahead() noexcept {
  try {
    load_flows();
  } catch (const std::exception&) {  // a child may need it, and says so
  }
}

}  // namespace foretrace::sim
