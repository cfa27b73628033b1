#pragma once
// The GPU that is emulated: the numbers of a file in hw/emulated/devices/, one `key: value` a line.
#include <cstdint>
#include <map>
#include <string>

namespace foretrace::emulated {

class Device {
 public:
  // Reads the file; ends the process with a message where it cannot: nothing can be emulated then.
  explicit Device(const char* path);
  const std::string& name() const { return name_; }
  // A key that the file lacks ends the process, too.
  int64_t operator[](const std::string& key) const;

 private:
  std::string path_, name_;
  std::map<std::string, int64_t> values_;
};

// The file that FORETRACE_DEVICE names.
const Device& device();
// FORETRACE_DEVICES of them, 1 if unset.
int device_count();
// The calling thread's, as cudaSetDevice chose it.
int& current_device();

// The CUDA that the program was built with, as CUDA writes it (13000): FORETRACE_CUDA.
int cuda_version();

// All of a file of the emulated GPU's; ends the process where it cannot be read.
std::string contents(const char* path);

// Says why on stderr and ends the process with exit code 2.
[[noreturn]] void refuse(const std::string& why);

}  // namespace foretrace::emulated
