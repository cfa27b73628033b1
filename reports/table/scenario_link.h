// A scenario's name, as a Markdown link to its file where the text has a place to link from.
#pragma once

#include <filesystem>
#include <string>

#include "scenarios/program/program.h"

namespace foretrace {

/// `linked_from` is the directory of the document; empty: the name alone.
inline std::string scenario_link(const Program& program, const std::filesystem::path& linked_from) {
  if (linked_from.empty()) return program.name;
  const auto target = std::filesystem::relative(program.file, linked_from).generic_string();
  return "[" + program.name + "](" + target + ")";
}

}  // namespace foretrace
