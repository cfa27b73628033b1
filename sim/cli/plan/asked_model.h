// The model that a plan is asked for: a shipped name, or a config.json somewhere.
#pragma once

#include <string>

namespace foretrace {

/// A path as a scalar of YAML. Throws UsageError for one that no line can have.
std::string path_in_yaml(const std::string& path);

/// As a scenario's `model:` says it. A file is named by its whole path, so that the scenarios may
/// lie anywhere.
std::string model_text(const std::string& model);

/// Throws UsageError, with a suggestion, for a model that is neither.
void check_model(const std::string& model);

}  // namespace foretrace
