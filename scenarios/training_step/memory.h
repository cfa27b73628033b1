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

class Memory {
 public:
  using Id = std::size_t;
  static constexpr Id kNothing = 0;

  /// `bytes`, rounded up to 512 as the allocator does.
  Id allocate(Part part, std::int64_t bytes);
  /// Once; kNothing is nothing.
  void free(Id id);

  const PartBytes& peak() const { return peak_; }
  const PartBytes& now() const { return now_; }

 private:
  struct Block {
    Part part{};
    std::int64_t bytes = 0;
  };
  std::vector<Block> blocks_{{}};
  PartBytes now_{}, peak_{};
};

}  // namespace foretrace::training
