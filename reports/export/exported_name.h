// How long a name of a file may get in another tool's format, where each span repeats it.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/base/text/words.h"

namespace foretrace {

inline constexpr std::size_t kLongestName = 1'000;
inline constexpr std::size_t kLongestKernel = 4'096;  // of templates of templates

inline std::string exported_name(std::string_view name) { return shortened(name, kLongestName); }

}  // namespace foretrace
