#include "sim/cli/kernels/nccl_environment.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/nccl/rules/settings.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "scenarios/program/environment.h"

namespace foretrace {
namespace {

std::string behind(const std::string& hint) { return hint.empty() ? "" : "\n  hint: " + hint; }

}  // namespace

std::map<std::string, std::string> nccl_environment(const std::vector<std::string>& entries) {
  const std::vector<std::string> known = nccl::setting_names();
  std::map<std::string, std::string> environment;
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError{fmt::format("--env {}: it is NAME=VALUE", entry)};
    }
    const std::string name = entry.substr(0, equals);
    if (std::ranges::find(known, name) == known.end()) {
      const std::vector<std::string>& all = environment_names();
      if (std::ranges::find(all, name) == all.end()) {
        const EnvironmentProblem unknown = unknown_variable(name);
        throw UsageError{fmt::format("{}{}", unknown.message, behind(unknown.hint))};
      }
      for (const EnvironmentProblem& wrong :
           check_environment({{name, entry.substr(equals + 1)}})) {
        throw UsageError{fmt::format("--env {}{}", wrong.message, behind(wrong.hint))};
      }
      print_error("note: {} is no setting by which NCCL's choice is known to change\n", name);
      continue;
    }
    if (!environment.emplace(name, entry.substr(equals + 1)).second) {
      throw UsageError{fmt::format("--env {}: {} is set twice", entry, name)};
    }
  }
  return environment;
}

}  // namespace foretrace
