#include "hw/emulated/device.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace foretrace::emulated {

std::string contents(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) refuse(std::string("cannot read the emulated GPU's file ") + path);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(file, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(file);
  return text;
}

void refuse(const std::string& why) {
  const std::string line = "foretrace: " + why + "\n";
  (void)!write(STDERR_FILENO, line.data(), line.size());
  _exit(2);
}

Device::Device(const char* path) : path_(path) {
  const std::string text = contents(path);
  for (size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, std::min(end, text.find(" #", begin)) - begin);
    begin = end + 1;
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(": ");
    if (colon == std::string::npos)
      refuse(path_ + ":" + std::to_string(number) + ": no `key: value`");
    const std::string key = line.substr(0, colon), value = line.substr(colon + 2);
    if (key == "name") {
      name_ = value.substr(0, value.find_last_not_of(' ') + 1);
      continue;
    }
    char* rest = nullptr;
    values_[key] = std::strtoll(value.c_str(), &rest, 10);
    if (rest == value.c_str() ||
        std::string_view(rest).find_first_not_of(' ') != std::string_view::npos)
      refuse(path_ + ":" + std::to_string(number) + ": `" + value + "` is no integer");
  }
}

int64_t Device::operator[](const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) refuse(path_ + ": lacks `" + key + "`");
  return found->second;
}

const Device& device() {
  static const Device* const the = [] {
    const char* const path = std::getenv("FORETRACE_DEVICE");
    if (!path)
      refuse(
          "FORETRACE_DEVICE names no file of an emulated GPU; `python3 -m foretrace capture` sets "
          "it");
    return new Device(path);
  }();
  return *the;
}

int device_count() {
  static const int count = [] {
    const char* const text = std::getenv("FORETRACE_DEVICES");
    return text ? std::atoi(text) : 1;
  }();
  return count;
}

int cuda_version() {
  static const int version = [] {
    constexpr int kDefault = 13000;
    const char* const text = std::getenv("FORETRACE_CUDA");
    return text ? std::atoi(text) : kDefault;
  }();
  return version;
}

int& current_device() {
  thread_local int current = 0;
  return current;
}

}  // namespace foretrace::emulated
