// `captured_step:` of a scenario: which records, and which ranks each stands for.
#pragma once

#include "scenarios/captured/expand.h"
#include "scenarios/read/reader.h"

namespace foretrace::captured {

/// Records lie beside the scenario. Every rank of `processes` is stood for once; problems are
/// reported where they stand, and an empty step is returned then.
CapturedStep read_captured_step(Reader& reader, const YamlNode& node);

}  // namespace foretrace::captured
