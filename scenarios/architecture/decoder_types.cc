#include "scenarios/architecture/decoder_types.h"

#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace::training {

const nlohmann::json& decoder_types() {
  static const nlohmann::json kTypes = nlohmann::json::parse(
      read_text_file(data_directory() / "scenarios/architectures/types/decoders.json"));
  return kTypes;
}

const nlohmann::json* decoder_type(const std::string& name) {
  const nlohmann::json& all = decoder_types().at("decoders");
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> decoder_names() {
  std::vector<std::string> names;
  for (const auto& one : decoder_types().at("decoders").items()) names.push_back(one.key());
  return names;
}

}  // namespace foretrace::training
