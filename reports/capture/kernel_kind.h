// What bounds a kernel, told by its name.
#pragma once

#include <cstdint>
#include <string_view>

#include "reports/capture/capture.h"

namespace foretrace::capture {

/// The word of --with that makes such work faster.
enum class KernelKind : std::uint8_t {
  Gemm,    ///< arithmetic: products, convolutions, attention
  Hbm,     ///< device memory: element by element, sums, norms, copies within a device
  Pcie,    ///< copies between host and device
  Nccl,    ///< collectives of the captured time
  Unknown  ///< no name that is known
};

KernelKind kind_of(EventKind event, std::string_view name);

/// "gemm", "hbm", "pcie"; empty for those that no what-if makes faster.
std::string_view what_if_word(KernelKind kind);

}  // namespace foretrace::capture
