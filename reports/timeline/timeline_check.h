// What every timeline keeps to, whoever wrote it.
#pragma once

#include <optional>
#include <string>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// The first thing that cannot be: an index that points nowhere, a span that ends before it begins,
/// a factor that is none, two rows for one region. Empty when all is well.
std::optional<std::string> what_is_wrong(const Timeline& timeline);

}  // namespace foretrace
