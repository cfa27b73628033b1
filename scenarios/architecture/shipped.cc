#include <algorithm>
#include <filesystem>

#include "scenarios/architecture/config.h"
#include "scenarios/read/reader.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace::training {

std::vector<std::string> shipped_models() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator{data_directory() / "scenarios/architectures", none}) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

Architecture shipped_model(const std::string& name) {
  const auto file = data_directory() / "scenarios/architectures" / (name + ".json");
  Reader reader{file.string()};
  Architecture model = read_config(reader, YamlNode{}, read_text_file(file), file.string());
  if (reader.problems.error_count() > 0) throw UsageError{render(reader.problems.take(), "")};
  model.name = name;
  return model;
}

}  // namespace foretrace::training
