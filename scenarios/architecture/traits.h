// The parts of read_config: each takes from a config.json what it is about.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "scenarios/architecture/architecture.h"
#include "scenarios/architecture/config.h"
#include "scenarios/architecture/config_values.h"

namespace foretrace::training {

/// `type` says how a trait is decided: always (true), never (false), by a key of the config.json
/// ("use_qk_norm"), or by its opposite ("!no_bias").
bool has_trait(ConfigValues& values, const Json& type, const char* trait);

/// Sizes and traits, all but what differs between layers.
Architecture read_traits(ConfigValues& values, const Json& type, const Replaced& replaced);

/// Windows, experts and rotary positions of each layer.
void read_layers(ConfigValues& values, const Json& type, Architecture& model);

/// Warnings for what changes the work and is not expanded, and for keys that nobody knows.
void warn_of_rest(ConfigValues& values);

/// Of a type that is no decoder: what it is, and its sizes as a scenario may write them in place.
void refuse_type(ConfigValues& values, const std::string& kind);

}  // namespace foretrace::training
