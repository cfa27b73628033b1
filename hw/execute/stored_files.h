// Files that a program reads: written before it is timed, below the directory for temporary files
// (TMPDIR), without a name, so that nothing is left behind. Knows nothing of CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace foretrace::hw {

class StoredFiles {
 public:
  /// Writes `bytes` that no storage can compress, and waits until they are stored. Throws IoError.
  void write(std::uint32_t reader, std::uint64_t bytes);
  /// Reads the first `bytes` of the reader's file past the page cache: O_DIRECT, or, where the file
  /// system refuses that (tmpfs does, and then there is no storage), what the kernel has of the
  /// file in memory is dropped first. From any thread, each with a reader of its own. Throws
  /// IoError.
  void read(std::uint32_t reader, void* into, std::uint64_t bytes);

 private:
  class File;
  struct Close {
    void operator()(File* file) const;
  };
  std::map<std::uint32_t, std::unique_ptr<File, Close>> files_;
};

}  // namespace foretrace::hw
