// What the language calls what torch.distributed says of its collectives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace foretrace::capture {

/// "all_reduce" of "allreduce"; empty for those that the language is not told of.
std::string_view word_of(std::string_view captured);

struct TypeWord {
  std::string_view captured, written;
  std::uint64_t bytes;
};
/// float32 for a type that is not known.
TypeWord type_of(std::string_view captured);

/// "group_0_1" for "[0, 1]".
std::string group_name(const std::string& ranks);

}  // namespace foretrace::capture
