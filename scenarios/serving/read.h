// The block `serving:` of a scenario.
#pragma once

#include "scenarios/read/reader.h"
#include "scenarios/serving/description.h"

namespace foretrace::serving {

/// All mistakes at once go to the reader's problems. Files that it names are beside the scenario.
Serving read_serving(Reader& reader, const YamlNode& node);

}  // namespace foretrace::serving
