// Where a model and its engines lie: `parallel`, `replicas`, `disaggregated` and `router`. Internal
// to scenarios/serving.
#pragma once

#include "scenarios/read/reader.h"
#include "scenarios/serving/description.h"

namespace foretrace::serving {

inline constexpr std::int64_t kMost = 10'000'000;  // of any count: tokens, requests

/// A whole number from 1 on, where the map has such a key.
void read_count(Reader& reader, MapReader& map, std::string_view key, std::int64_t& value,
                std::int64_t most = kMost);

/// `serving` has its model; the rest is judged by it. `node` is where `map` lies.
void read_placement(Reader& reader, const YamlNode& node, MapReader& map, Serving& serving);

}  // namespace foretrace::serving
