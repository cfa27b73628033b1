#include "sim/cli/plan/asked_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "scenarios/architecture/config.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/is_text.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/words.h"
#include "scenarios/base/text/yaml_reader.h"

namespace foretrace {

namespace fs = std::filesystem;

std::string path_in_yaml(const std::string& path) {
  Problems problems{path};
  if (in_one_line(path) != path || !is_text(path, problems)) {
    throw UsageError{
        "a config.json whose path has control characters, or is no UTF-8 text, cannot be named in "
        "a file"};
  }
  std::string text = "'";
  for (const char c : path) text += c == '\'' ? "''" : std::string{c};
  return text + "'";
}

std::string model_text(const std::string& model) {
  if (!fs::path{model}.has_extension() || !fs::exists(model)) return model;
  return fmt::format("{{config: {}}}",
                     path_in_yaml(fs::absolute(model).lexically_normal().string()));
}

void check_model(const std::string& model) {
  if (fs::path{model}.has_extension() && fs::exists(model)) return;
  const std::vector<std::string> known = training::shipped_models();
  if (std::ranges::find(known, model) != known.end()) return;
  const bool is_file = fs::path{model}.extension() == ".json" || fs::exists(model);
  std::string hint = is_file ? similar_file(model) : suggest(model, known);
  if (hint.empty()) {
    hint = fmt::format("a config.json of a model, or one of {}", fmt::join(known, ", "));
  }
  throw UsageError{is_file
                       ? fmt::format("{}: there is no such config.json\n  hint: {}", model, hint)
                       : fmt::format("unknown model '{}'\n  hint: {}", model, hint)};
}

}  // namespace foretrace
