// The key `serving` of timeline.json.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "scenarios/serving/served_facts.h"

namespace foretrace {

nlohmann::ordered_json to_json(const ServingFacts& facts);

/// Throws nlohmann's exceptions for what has another form.
ServingFacts serving_facts(const nlohmann::json& json);

/// What no traffic can have; empty: nothing.
std::optional<std::string> what_is_wrong(const ServingFacts& facts);

}  // namespace foretrace
