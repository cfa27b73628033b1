#include "scenarios/base/values/json_depth.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/base/text/errors.h"

namespace foretrace {

std::size_t json_depth(std::string_view text) {
  std::size_t depth = 0, most = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && (text[i] == '[' || text[i] == '{')) {
      most = std::max(most, ++depth);
    } else if (!in_string && (text[i] == ']' || text[i] == '}') && depth > 0) {
      --depth;
    }
  }
  return most;
}

void refuse_deep_json(std::string_view text, const std::string& where) {
  if (json_depth(text) <= kDeepestJson) return;
  throw UsageError{fmt::format("{}: more than {} brackets in one another", where, kDeepestJson)};
}

}  // namespace foretrace
