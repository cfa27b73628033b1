// What is known of a captured kernel, beside its name's meaning in models/kernels.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace foretrace {

/// What a captured kernel was launched with, and how its operation's tensors lie. 0: not known.
struct CapturedShape {
  std::string name;            ///< as scenarios/captured/kernel_name.h writes it
  std::uint64_t grid = 0;      ///< blocks
  std::uint32_t block = 0;     ///< threads of each
  std::uint64_t inner = 0;     ///< last dimension of the operation's largest tensor, in elements
  std::uint64_t joined = 0;    ///< shortest contiguous run of elements in one of its tensors
  std::uint64_t channels = 0;  ///< second dimension of its largest tensor
  friend auto operator<=>(const CapturedShape&, const CapturedShape&) = default;
};

}  // namespace foretrace
