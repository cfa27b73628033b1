// What the types of config.json have in common with each other and what not:
// architectures/types/decoders.json, read once.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace foretrace::training {

/// The whole file. Throws UsageError where it is not there.
const nlohmann::json& decoder_types();

/// A type's own facts: its defaults, and how its layers are built; null for a type that nobody
/// knows as a decoder.
const nlohmann::json* decoder_type(const std::string& name);

/// Names of all decoders.
std::vector<std::string> decoder_names();

}  // namespace foretrace::training
