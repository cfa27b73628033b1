// The command line foretrace: lists the commands; each lives with the library it drives.
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
#include "sim/cli/commands.h"
#include "sim/cli/version.h"
#include "sim/engine/load_flows.h"

namespace foretrace {
namespace {

/// A command lives for a tenth of a second, and a fifth of that went into memory that it asked for
/// page by page, gave back, and asked for again. So the heap is kept, and its first part is in
/// large pages where the system has them. Nothing is taken before it is used.
void keep_memory() {
#ifdef M_MMAP_THRESHOLD
  constexpr int kLarge = 32 << 20;  // the most that it takes
  constexpr int kHeap = 64 << 20;
  constexpr std::uintptr_t kLargePage = 2 << 20;
  mallopt(M_MMAP_THRESHOLD, kLarge);
  mallopt(M_TRIM_THRESHOLD, 2 * kHeap);
  mallopt(M_TOP_PAD, kHeap);
  void* volatile grown = std::malloc(1 << 20);  // volatile: not left out
  std::free(grown);
  mallopt(M_TOP_PAD, 1 << 20);
#ifdef MADV_HUGEPAGE
  const auto end = reinterpret_cast<std::uintptr_t>(::sbrk(0));  // NOLINT: addresses
  const std::uintptr_t begin = (end - kHeap + kLargePage - 1) / kLargePage * kLargePage;
  (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // NOLINT
#endif
#endif
}

int run(int argc, char** argv) {
  return run_command_line(argc, argv,
                          "foretrace predicts what a multi-GPU program does in time, and compares "
                          "the prediction with a measurement.",
                          version_text(), {kCommands.begin(), kCommands.end()});
}

/// Where the stack may not grow: on another one, of memory as any other; so are those of its
/// threads.
int run_on_its_own_stack(int argc, char** argv) {
  constexpr std::size_t kStack = sim::kRoomOnTheStack;
  struct Call {
    int argc;
    char** argv;
    int exit_code;
  } call{argc, argv, kOurBug};
  const auto begin = [](void* of) -> void* {
    auto& it = *static_cast<Call*>(of);
    it.exit_code = run(it.argc, it.argv);
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_t thread{};
  const bool runs = ::pthread_attr_init(&attributes) == 0 &&
                    ::pthread_attr_setstacksize(&attributes, kStack) == 0 &&
                    ::pthread_setattr_default_np(&attributes) == 0 &&
                    ::pthread_create(&thread, &attributes, begin, &call) == 0;
  if (!runs || ::pthread_join(thread, nullptr) != 0) {
    print_error("no memory for a stack of {} MiB\n", kStack >> 20);
    return kBroke;
  }
  return call.exit_code;
}

}  // namespace
}  // namespace foretrace

int main(int argc, char** argv) {
  const bool has_room = foretrace::sim::make_room_on_the_stack();
  foretrace::keep_memory();
  return has_room ? foretrace::run(argc, argv) : foretrace::run_on_its_own_stack(argc, argv);
}
