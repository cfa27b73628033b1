// Reads a config.json from a test's own text, and collects what is said of it.
#pragma once

#include <string>

#include "scenarios/architecture/config.h"
#include "scenarios/architecture/counts.h"
#include "scenarios/read/reader.h"
#include "scenarios/base/text/diagnostic.h"

namespace foretrace::training {

struct ReadConfig {
  Architecture model;
  std::string said;  ///< errors and warnings as they are printed
  bool is_sound = false;
};

inline ReadConfig config(const std::string& text, const Replaced& replaced = {}) {
  Reader reader{"a.yaml"};
  const YamlNode at;
  ReadConfig read;
  read.model = read_config(reader, at, text, "config.json", replaced);
  read.is_sound = reader.problems.error_count() == 0;
  read.said = render(reader.problems.take(), "");
  return read;
}

/// A config.json of a type with these keys beside it.
inline std::string of_type(const std::string& type, const std::string& keys = "") {
  return "{\"model_type\": \"" + type + "\"" + (keys.empty() ? "" : ", ") + keys + "}";
}

}  // namespace foretrace::training
