// How a command prints what it found.
#pragma once

namespace foretrace {

enum class OutputFormat { Text, Json, Csv };

}  // namespace foretrace
