// Device memory of one GPU in the order in which PyTorch's calls allocate and free it. The caching
// allocator works in the order of the host's calls, not of the GPU's work, so the largest sum needs
// no simulation.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace foretrace::training {

enum class Part : std::uint8_t {
  Parameters,
  Gradients,
  Optimizer,
  Activations,
  Temporary,
  Buffers
};
inline constexpr std::size_t kParts = static_cast<std::size_t>(Part::Buffers) + 1;
/// "parameters"
std::string_view part_name(Part part);

/// Bytes by part.
using PartBytes = std::array<std::int64_t, kParts>;
std::int64_t sum(const PartBytes& bytes);

/// A place in the calls of a host thread: before the operation `op` of the program. What is written
/// several times, a loop's passes, comes to its operations anew in a further group each.
struct Moment {
  std::int64_t group = 0, op = 0;
  friend auto operator<=>(const Moment&, const Moment&) = default;
};

/// From the operation `op` on the groups begin at `group`; in a loop one for each of its first
/// `calls` passes, of which all others are like the last.
struct Section {
  std::int64_t op = 0, group = 0, calls = 1;
};

/// What is allocated in all from a moment on, and the most that was before the next one.
struct MemoryChange {
  Moment at;
  std::int64_t bytes = 0, most = 0;
};

/// The memory of processes that run the same thread, in the order of their calls.
struct MemoryCurve {
  std::vector<std::int64_t> processes;
  std::vector<Section> sections;
  std::vector<MemoryChange> changes;
};

class Memory {
 public:
  using Id = std::size_t;
  static constexpr Id kNothing = 0;

  /// `clock` says when something changes, for changes().
  explicit Memory(const Moment* clock = nullptr) : clock_{clock} {}

  /// `bytes`, rounded up to 512 as the allocator does.
  Id allocate(Part part, std::int64_t bytes);
  /// Once; kNothing is nothing.
  void free(Id id);

  const PartBytes& peak() const { return peak_; }
  const PartBytes& now() const { return now_; }
  const std::vector<MemoryChange>& changes() const { return changes_; }

 private:
  struct Block {
    Part part{};
    std::int64_t bytes = 0;
  };
  void note_change();

  const Moment* clock_;
  std::vector<MemoryChange> changes_;
  std::vector<Block> blocks_{{}};
  PartBytes now_{}, peak_{};
};

}  // namespace foretrace::training
