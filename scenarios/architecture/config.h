// Models as Hugging Face's config.json describes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/architecture/architecture.h"

namespace foretrace {
struct Reader;
struct YamlNode;
}  // namespace foretrace

namespace foretrace::training {

/// What a scenario says instead of the file: a cut or grown model.
struct Replaced {
  std::optional<std::int64_t> layers, vocab;
  std::optional<bool> tied;
};

/// A decoder from the text of a config.json, of the types that architectures/types/decoders.json
/// knows. Null, zero and absent keys mean what transformers makes of them. Keys that change the
/// work and are not expanded are warnings, as are keys that nobody knows. `at` is where the
/// scenario names the file; mistakes are reported there.
Architecture read_config(Reader& reader, const YamlNode& at, const std::string& text,
                         const std::string& file, const Replaced& replaced = {});

/// Names that `model:` may say: those of scenarios/architectures.
std::vector<std::string> shipped_models();
/// One of them. Throws UsageError where its file cannot be read.
Architecture shipped_model(const std::string& name);

}  // namespace foretrace::training
