#include "reports/capture/kernel_name.h"

#include <algorithm>
#include <cctype>

namespace foretrace::capture {

std::string short_name(std::string_view kernel) {
  constexpr std::size_t kMost = 60;
  if (kernel.starts_with("void ")) kernel.remove_prefix(5);
  kernel = kernel.substr(0, kernel.find_first_of("<("));
  const std::size_t scope = kernel.rfind("::");
  if (scope != std::string_view::npos) kernel.remove_prefix(scope + 2);
  std::string name;
  for (const char c : kernel.substr(0, kMost)) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (is_plain) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty() || std::isalpha(static_cast<unsigned char>(name.front())) == 0) {
    name = "kernel_" + name;
  }
  return name;
}

bool is_nccl(std::string_view kernel) {
  return kernel.starts_with("nccl") && kernel.find("Kernel") != std::string_view::npos;
}

}  // namespace foretrace::capture
