// How fast the host calls CUDA, which changes from start to start and within one: by half between
// hosts of one kind. A result that says it tells a host's doing from the model's.
#pragma once

#include <cstdint>
#include <optional>

namespace foretrace::hw {

/// Nanoseconds of the call that launches a kernel, on device `ordinal`, which is idle: the median
/// of eight times 16 calls in a row, of a kernel that ends at once, in a stream of this process
/// that nothing else uses. Waits for them; takes 0.6 ms. None where CUDA fails: whoever measures
/// finds that out for itself.
std::optional<std::int64_t> launch_ns(int ordinal);

}  // namespace foretrace::hw
