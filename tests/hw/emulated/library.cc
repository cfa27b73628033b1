#include "library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

#include "hw/emulated/record.h"

namespace emulated_test {
namespace {

void* library() {
  static void* const handle = [] {
    setenv("FORETRACE_DEVICE", FORETRACE_DEVICE_FILE, 1);
    setenv("FORETRACE_DEVICES", "2", 1);
    setenv("FORETRACE_CUDA", "13000", 1);
    void* const opened = dlopen(FORETRACE_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!opened) throw std::runtime_error(dlerror());
    return opened;
  }();
  return handle;
}

}  // namespace

void* symbol(const char* name) {
  void* const found = dlsym(library(), name);
  if (!found) throw std::runtime_error(std::string("the library lacks ") + name);
  return found;
}

size_t record_count() { return call<size_t>("foretrace_record_count"); }

std::vector<std::string> records_since(size_t first) {
  using foretrace::emulated::Record;
  std::vector<Record> records(record_count() - first);
  call<void>("foretrace_records", first, first + records.size(), records.data());
  std::vector<std::string> texts;
  for (const Record& r : records) {
    std::string text = std::string("{") + call<const char*>("foretrace_text", r.text);
    if (r.name != foretrace::emulated::kNone)
      text +=
          std::string(",\"name\":\"") + call<const char*>("foretrace_kernel_name", r.name) + "\"";
    if (r.stream != foretrace::emulated::kNone) text += ",\"stream\":" + std::to_string(r.stream);
    if (r.graph != foretrace::emulated::kNone) text += ",\"graph\":" + std::to_string(r.graph);
    texts.push_back(text + "}");
  }
  return texts;
}

}  // namespace emulated_test
