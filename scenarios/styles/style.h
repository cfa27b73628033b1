// A training step as somebody's code makes it: templates that were learned from captures of that
// code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scenarios/captured/record.h"
#include "scenarios/styles/formula.h"

namespace foretrace::styles {

/// What is asked of a style.
struct Asked {
  Sizes sizes;  ///< B, S, H, N, K, D, F, V, P
  std::int64_t layers = 0;
  std::string precision;  ///< "bfloat16", "autocast"
  bool recomputes = false;
  bool clips = false;
  std::string optimizer;  ///< "fused", "foreach"
};

/// A family of models in somebody's code: scenarios/styles/CODE/FAMILY.json.gz.
class Style {
 public:
  Style(const std::string& code, const std::string& family);

  /// What its models are beside their sizes, where that is not a Llama's.
  const nlohmann::json& traits() const { return family_.at("traits"); }
  /// "B from 2 to 8, ...": where sizes are not those of the captures; empty where they are.
  std::string beyond(const Asked& asked) const;
  std::int64_t fewest_layers() const { return family_.at("layers").get<std::int64_t>(); }
  /// "torch 2.11.0, transformers 5.17.0"
  std::string learned_from() const;

  /// The step's record, as a capture of that code would have it. A JSON object a line.
  std::string record_text(const Asked& asked) const;
  captured::Record record(const Asked& asked) const;

 private:
  nlohmann::json family_, lists_;
  std::string file_;
};

/// Codes and families that there are, by name.
std::vector<std::string> codes();
std::vector<std::string> families(const std::string& code);

/// A sentence for steps whose code is not known: how far other code was from ours.
std::string own_code_note();

}  // namespace foretrace::styles
