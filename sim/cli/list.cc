#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/machine/machine.h"
#include "scenarios/command_line/command.h"
#include "scenarios/program/ops.h"
#include "scenarios/text/data_directory.h"
#include "sim/cli/commands.h"

namespace foretrace {
namespace {

struct Options {
  std::string what;
  std::string format = "text";
};

std::vector<std::string> scenario_files() {
  std::vector<std::string> files;
  const auto& root = data_directory();
  std::error_code none;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator{root / "scenarios", none}) {
    if (entry.path().extension() != ".yaml") continue;
    files.push_back(std::filesystem::relative(entry.path(), root).string());
  }
  std::ranges::sort(files);
  return files;
}

std::vector<std::string> parameter_keys() {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const ParamInfo& parameter = info(static_cast<Param>(i));
    keys.push_back(fmt::format("{}: {}", parameter.key, parameter.text));
  }
  return keys;
}

template <std::size_t... I>
std::vector<std::string> kinds(std::index_sequence<I...>) {
  return {kind_name(std::variant_alternative_t<I, OpKind>{})...};
}

std::vector<std::string> op_names() {
  std::vector<std::string> all = kinds(std::make_index_sequence<std::variant_size_v<OpKind>>{});
  using enum CollectiveKind;
  for (const CollectiveKind kind :
       {Broadcast, Reduce, AllGather, ReduceScatter, AllToAll, Gather, Scatter}) {
    NcclCollective collective{};
    collective.kind = kind;
    all.push_back(kind_name(collective));
  }
  std::ranges::sort(all);
  return all;
}

std::vector<std::string> names(const std::string& what) {
  if (what == "scenarios") return scenario_files();
  if (what == "machines") return machine_names();
  if (what == "parameters") return parameter_keys();
  return op_names();
}

}  // namespace

void add_list_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App& command =
      add_subcommand(app, "list", "What there is: scenarios, machines, ops, parameters",
                     "foretrace list machines");
  command.add_option("what", options->what, "scenarios, machines, ops or parameters")
      ->required()
      ->check(CLI::IsMember({"scenarios", "machines", "ops", "parameters"}));
  command.add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command.callback([options, &exit_code] {
    const std::vector<std::string> all = names(options->what);
    if (options->format == "json") {
      fmt::print("{}\n", nlohmann::json(all).dump(2));
    } else {
      for (const std::string& name : all) fmt::print("{}\n", name);
    }
    exit_code = kDone;
  });
}

}  // namespace foretrace
