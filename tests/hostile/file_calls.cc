// Loaded before libc's own (LD_PRELOAD): notes every call that changes a file, in order, and ends
// the process before one of them, as kill -9 or a power failure would.
//   FILE_CALLS_LOG=FILE     a line for each call: open PATH FLAGS FD, write FD BYTES, sync FD,
//                           rename FROM TO, unlink PATH
//   FILE_CALLS_END=N        the N-th of these calls (from 1) does not happen: the process is killed
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

ssize_t real_write(int descriptor, const void* bytes, size_t count) {
  static const auto kWrite = next<ssize_t (*)(int, const void*, size_t)>("write");
  return kWrite(descriptor, bytes, count);
}

int log_descriptor() {
  static const int kDescriptor = [] {
    const char* name = std::getenv("FILE_CALLS_LOG");
    static const auto kOpen = next<int (*)(const char*, int, ...)>("open");
    return name == nullptr ? -1 : kOpen(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  }();
  return kDescriptor;
}

/// Before a call: a line in the log, or the end.
__attribute__((format(printf, 1, 2))) void note(const char* format, ...) {
  static std::atomic<long> count{0};
  static const long kEnd = [] {
    const char* number = std::getenv("FILE_CALLS_END");
    return number == nullptr ? 0 : std::atol(number);
  }();
  if (++count == kEnd) ::kill(::getpid(), SIGKILL);
  char line[4096];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (log_descriptor() < 0 || length <= 0) return;
  const auto bytes =
      static_cast<size_t>(length) < sizeof line ? static_cast<size_t>(length) : sizeof line - 1;
  if (real_write(log_descriptor(), line, bytes) < 0) std::abort();
}

bool changes(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0; }

int open_noted(const char* name, const char* path, int flags, mode_t mode) {
  const auto real = next<int (*)(const char*, int, ...)>(name);
  if (!changes(flags)) return real(path, flags, mode);
  const int descriptor = real(path, flags, mode);
  if (descriptor >= 0) {
    note("open\t%s\t%s%s\t%d\n", path, (flags & O_EXCL) != 0 ? "new" : "old",
         (flags & O_TRUNC) != 0 ? ",truncate" : "", descriptor);
  }
  return descriptor;
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_noted("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_noted("open64", path, flags, mode);
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (descriptor > 2) note("write\t%d\t%zu\n", descriptor, count);
  return real_write(descriptor, bytes, count);
}

int fsync(int descriptor) {
  note("sync\t%d\n", descriptor);
  return next<int (*)(int)>("fsync")(descriptor);
}

int rename(const char* from, const char* to) noexcept {
  note("rename\t%s\t%s\n", from, to);
  return next<int (*)(const char*, const char*)>("rename")(from, to);
}

int unlink(const char* path) noexcept {
  note("unlink\t%s\n", path);
  return next<int (*)(const char*)>("unlink")(path);
}

int close(int descriptor) {
  if (log_descriptor() >= 0 && descriptor > 2) note("close\t%d\n", descriptor);
  return next<int (*)(int)>("close")(descriptor);
}

}  // extern "C"
