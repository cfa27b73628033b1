// Memory of the system's, page by page, as the harness' pageable buffers are.
#pragma once

#include <cstddef>

namespace foretrace::hw {

enum class PageKind { Usual, Small, Huge };  ///< as the system likes, 4 KiB only, 2 MiB if it can

/// Fresh pages, which nobody has touched.
class HostPages {
 public:
  explicit HostPages(std::size_t bytes, PageKind kind = PageKind::Usual);
  ~HostPages();
  HostPages(const HostPages&) = delete;
  HostPages& operator=(const HostPages&) = delete;

  void* data() const { return data_; }
  char* chars() const { return static_cast<char*>(data_); }
  std::size_t bytes() const { return bytes_; }
  /// Writes one byte of each page of `step` bytes.
  void touch(std::size_t step) const;

 private:
  void* base_ = nullptr;
  std::size_t mapped_ = 0;
  void* data_ = nullptr;  ///< at a multiple of 2 MiB
  std::size_t bytes_ = 0;
};

}  // namespace foretrace::hw
