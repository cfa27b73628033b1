#pragma once
// What the emulated device was asked for, in the order of the host's calls.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace foretrace::emulated {

constexpr uint32_t kNone = ~0u;

// One call. The layout is read by scenarios/pytorch/foretrace/emulation.py: 48 bytes, no padding.
struct Record {
  int64_t t;      // ns of the host's clock without the time in this library, since the region began
  int64_t cpu;    // the same of the processor's time of the threads that call, summed: what others
                  // ran meanwhile is not in it
  int64_t clock;  // ns since 1970, with all
  uint32_t text;  // fragment of JSON that says what was called: index for `text_of`
  uint32_t thread;  // index for `thread_name`
  uint32_t name;    // of a kernel, or kNone
  uint32_t stream;  // or kNone
  uint32_t comm;    // or kNone
  uint32_t graph;   // into which the call was captured, or kNone
};
static_assert(sizeof(Record) == 48);

// The time between construction and destruction belongs to the library, not to the program's host
// work.
class LibraryTime {
 public:
  LibraryTime();
  ~LibraryTime();
  LibraryTime(const LibraryTime&) = delete;
  LibraryTime& operator=(const LibraryTime&) = delete;
  int64_t began() const { return began_; }
  int64_t cpu() const { return cpu_; }

 private:
  int64_t began_, cpu_;  // ns: monotonic; the program's own of all threads that called so far
};

// Where a call belongs, beside what it is.
struct Place {
  uint32_t stream = kNone;
  uint32_t graph = kNone;
  uint32_t name = kNone;
  uint32_t comm = kNone;
};

// Writes down one call. `json` are the keys of its record without braces: "k":"memset","n":8.
void record(const LibraryTime& time, std::string_view json, Place place = {});

// The index of a kernel's name, as the compiler mangled it. The text is copied.
uint32_t name_index(const char* mangled);

// A call that is only counted: its record would cost more than it does.
class Counter {
 public:
  explicit Counter(const char* function);
  void add() { calls_.fetch_add(1, std::memory_order_relaxed); }
  const char* function() const { return function_; }
  uint64_t take() { return calls_.exchange(0); }

 private:
  const char* function_;
  std::atomic<uint64_t> calls_{0};
};
#define FORETRACE_COUNT(function)                                              \
  do {                                                                         \
    static auto* const counter = new ::foretrace::emulated::Counter(function); \
    counter->add();                                                            \
  } while (false)

// text of printf's kind
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

// Of 'A "b"' a text of JSON, quoted.
std::string quoted(std::string_view text);

// For the capture, and for tests.
size_t record_count();
Record record_at(size_t index);
std::string text_of(const Record& record);
std::string demangled_name(uint32_t name);
std::string demangled(const std::string& mangled);

}  // namespace foretrace::emulated
