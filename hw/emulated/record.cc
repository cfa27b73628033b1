#include "hw/emulated/record.h"

#include <cxxabi.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "hw/emulated/exported.h"

namespace foretrace::emulated {
namespace {

int64_t nanoseconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// Texts by index, each once.
class Texts {
 public:
  uint32_t index(std::string_view text) {
    const auto found = indices_.find(std::string(text));
    if (found != indices_.end()) return found->second;
    const auto index = static_cast<uint32_t>(texts_.size());
    texts_.push_back(&*indices_.emplace(text, index).first);
    return index;
  }
  const std::string& operator[](size_t index) const { return texts_.at(index)->first; }
  size_t size() const { return texts_.size(); }

 private:
  std::unordered_map<std::string, uint32_t> indices_;
  std::vector<const std::pair<const std::string, uint32_t>*> texts_;
};

struct Store {
  std::mutex mutex;
  std::vector<Record> records;
  Texts texts, names;
  std::vector<std::string> threads;
  std::vector<Counter*> counters;
  bool on = true;
  int64_t origin = 0, cpu_origin = 0;  // of the region, on the clocks without the library's time
};

// Never destroyed: the program's own end may still call us.
Store& store() {
  static auto* const the = new Store;
  return *the;
}

std::atomic<int64_t> library_ns{0}, program_cpu{0};
thread_local int depth = 0;  // of calls inside the library: only the outermost counts
thread_local int64_t cpu_left =
    -1;  // this thread's time on a processor when it last left the library
thread_local uint32_t thread_index = kNone;

// Under the store's lock.
uint32_t this_thread() {
  if (thread_index == kNone) {
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    thread_index = static_cast<uint32_t>(store().threads.size());
    store().threads.push_back(gettid() == getpid() ? "main" : name);
  }
  return thread_index;
}

}  // namespace

namespace {
// PyTorch's watchdogs of NCCL only look whether events are done: no work of the program.
bool works() {
  thread_local const bool answer = [] {
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    return std::string_view(name).substr(0, 7) != "pt_nccl";
  }();
  return answer;
}
}  // namespace

LibraryTime::LibraryTime() : began_(nanoseconds(CLOCK_MONOTONIC)), cpu_(program_cpu) {
  if (depth++ > 0 || !works()) return;
  const int64_t cpu = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  // What a thread did before its first call, autograd's start say, counts from then on.
  cpu_ = program_cpu += cpu_left < 0 ? 0 : cpu - cpu_left;
}
LibraryTime::~LibraryTime() {
  if (--depth > 0 || !works()) return;
  cpu_left = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  library_ns += nanoseconds(CLOCK_MONOTONIC) - began_;
}

Counter::Counter(const char* function) : function_(function) {
  const std::lock_guard lock(store().mutex);
  store().counters.push_back(this);
}

void record(const LibraryTime& time, std::string_view json, Place place) {
  Store& s = store();
  const std::lock_guard lock(s.mutex);
  if (!s.on) return;
  s.records.push_back({time.began() - library_ns - s.origin, time.cpu() - s.cpu_origin,
                       nanoseconds(CLOCK_REALTIME), s.texts.index(json), this_thread(), place.name,
                       place.stream, place.comm, place.graph});
}

uint32_t name_index(const char* mangled) {
  const std::lock_guard lock(store().mutex);
  return store().names.index(mangled);
}

std::string format(const char* pattern, ...) {
  va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  std::string text(static_cast<size_t>(std::vsnprintf(nullptr, 0, pattern, again)), '\0');
  va_end(again);
  std::vsnprintf(text.data(), text.size() + 1, pattern, arguments);
  va_end(arguments);
  return text;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

size_t record_count() {
  const std::lock_guard lock(store().mutex);
  return store().records.size();
}

Record record_at(size_t index) {
  const std::lock_guard lock(store().mutex);
  return store().records.at(index);
}

std::string text_of(const Record& record) {
  const std::lock_guard lock(store().mutex);
  return store().texts[record.text];
}

std::string demangled(const std::string& mangled) {
  int status = 0;
  char* const plain = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  const std::string name = status == 0 && plain ? plain : mangled;
  std::free(plain);
  return name;
}

std::string demangled_name(uint32_t name) {
  std::string mangled;
  {
    const std::lock_guard lock(store().mutex);
    mangled = store().names[name];
  }
  return demangled(mangled);
}

}  // namespace foretrace::emulated

// What the capture asks for, by ctypes. Texts stay until the next call of the same thread.
using namespace foretrace::emulated;
namespace {
thread_local std::string answer;
const char* keep(std::string text) {
  answer = std::move(text);
  return answer.c_str();
}
}  // namespace

FORETRACE_EXPORTED size_t foretrace_record_count() { return record_count(); }
FORETRACE_EXPORTED void foretrace_records(size_t begin, size_t end, Record* out) {
  const std::lock_guard lock(store().mutex);
  for (size_t i = begin; i < end && i < store().records.size(); ++i) *out++ = store().records[i];
}
FORETRACE_EXPORTED const char* foretrace_text(uint32_t index) {
  const std::lock_guard lock(store().mutex);
  return keep(index < store().texts.size() ? store().texts[index] : "");
}
FORETRACE_EXPORTED const char* foretrace_kernel_name(uint32_t index) {
  return keep(demangled_name(index));
}
FORETRACE_EXPORTED const char* foretrace_demangled(const char* name) {
  return keep(demangled(name));
}
FORETRACE_EXPORTED const char* foretrace_thread_name(uint32_t index) {
  const std::lock_guard lock(store().mutex);
  return keep(index < store().threads.size() ? store().threads[index] : "");
}
// Calls that are only counted, as an object of JSON; they begin anew.
FORETRACE_EXPORTED const char* foretrace_counts() {
  const std::lock_guard lock(store().mutex);
  std::map<std::string, uint64_t> sums;
  for (Counter* const counter : store().counters) sums[counter->function()] += counter->take();
  std::string json;
  for (const auto& [function, n] : sums)
    if (n > 0) json += (json.empty() ? "" : ",") + quoted(function) + ":" + std::to_string(n);
  return keep("{" + json + "}");
}
FORETRACE_EXPORTED void foretrace_recording(int on) {
  const std::lock_guard lock(store().mutex);
  store().on = on != 0;
}
// A region begins now: `t` counts from here.
FORETRACE_EXPORTED void foretrace_set_origin() {
  const LibraryTime time;
  const std::lock_guard lock(store().mutex);
  store().origin = time.began() - library_ns;
  store().cpu_origin = time.cpu();
}
// ns since the region began, without the library's time.
FORETRACE_EXPORTED int64_t foretrace_now() {
  const LibraryTime time;
  const std::lock_guard lock(store().mutex);
  return time.began() - library_ns - store().origin;
}
// The same on the processor's clock.
FORETRACE_EXPORTED int64_t foretrace_cpu_now() {
  const LibraryTime time;
  const std::lock_guard lock(store().mutex);
  return time.cpu() - store().cpu_origin;
}
// Time that the recorder in Python took, which is no host work of the program either.
FORETRACE_EXPORTED void foretrace_exclude(int64_t ns) {
  library_ns += ns;
  if (cpu_left >= 0) cpu_left = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}
