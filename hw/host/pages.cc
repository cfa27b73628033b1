#include "hw/host/pages.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "scenarios/base/text/errors.h"

namespace foretrace::hw {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

HostPages::HostPages(std::size_t bytes, PageKind kind) : mapped_{bytes + kHugePage}, bytes_{bytes} {
  base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base_ == MAP_FAILED) {
    throw IoError{"cannot map " + std::to_string(bytes) +
                  " B of host memory: " + std::strerror(errno)};
  }
  const auto address = reinterpret_cast<std::uintptr_t>(base_);
  data_ = static_cast<char*>(base_) + (kHugePage - address % kHugePage) % kHugePage;
  if (kind == PageKind::Small) madvise(data_, bytes_, MADV_NOHUGEPAGE);
  if (kind == PageKind::Huge) madvise(data_, bytes_, MADV_HUGEPAGE);
}

HostPages::~HostPages() { munmap(base_, mapped_); }

void HostPages::touch(std::size_t step) const {
  volatile char* const at = chars();
  for (std::size_t i = 0; i < bytes_; i += step) at[i] = 1;
}

}  // namespace foretrace::hw
