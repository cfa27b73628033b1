// What the page asks, as arguments of `foretrace plan`: checked before any command sees them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "sim/applications/local_page/problem.h"

namespace foretrace::local_page {

struct PlanQuestion {
  std::string page;                   ///< which page asks: its next question ends this one
  bool is_coarse = false;             ///< plan --coarse
  std::optional<std::string> config;  ///< text of a config.json, in place of a model's name
  std::string machine;
  std::vector<std::string> with;       ///< "nic=0.5x"
  std::vector<std::string> arguments;  ///< "plan", "llama3-70b", "--machine=..."
};
tl::expected<PlanQuestion, Problem> read_plan_question(std::string_view body);

/// A row of a plan whose timeline is wanted.
struct RowQuestion {
  std::string page;
  std::size_t plan = 0, row = 0;
};
tl::expected<RowQuestion, Problem> read_row_question(std::string_view body);

/// The name of the file that a `config` is written to, beside the command.
inline constexpr const char* kConfigFile = "config.json";

}  // namespace foretrace::local_page
