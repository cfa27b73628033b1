#include "scenarios/list_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "scenarios/op_fields.h"

namespace foretrace {
namespace {

struct Row {
  std::string name;
  std::string keys;
  std::string summary;
};

std::vector<Row> all_ops() {
  std::vector<Row> rows;
  const auto add = [&rows](const auto& ops) {
    for (const auto& op : ops) {
      rows.push_back({std::string{op.name}, std::string{op.keys}, std::string{op.summary}});
    }
  };
  for (const auto ops :
       {host_ops(), kernel_ops(), copy_ops(), order_ops(), memory_ops(), nccl_ops()}) {
    add(ops);
  }
  add(block_ops());
  return rows;
}

void print_ops(const std::string& format) {
  const auto rows = all_ops();
  if (format == "json") {
    auto json = nlohmann::ordered_json::array();
    for (const Row& row : rows) {
      json.push_back({{"name", row.name}, {"keys", row.keys}, {"summary", row.summary}});
    }
    fmt::print("{}\n", json.dump(2));
    return;
  }
  for (const Row& row : rows) {
    fmt::print("{:<22} {}\n{:<22} {}\n", row.name, row.summary, "", row.keys);
  }
}

void print_scenarios(const std::filesystem::path& directory, const std::string& format) {
  if (!std::filesystem::is_directory(directory)) {
    throw UsageError{fmt::format("{}: there is no such directory", directory.string())};
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{directory}) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  auto json = nlohmann::ordered_json::array();
  for (const auto& file : files) {
    const Program program = load_scenario(file);
    if (format == "json") {
      json.push_back(
          {{"file", file.string()}, {"name", program.name}, {"summary", program.summary}});
    } else {
      fmt::print("{:<55} {}\n", std::filesystem::relative(file, directory).string(),
                 program.summary);
    }
  }
  if (format == "json") fmt::print("{}\n", json.dump(2));
}

}  // namespace

void add_list_command(CLI::App& app, int& exit_code) {
  struct Options {
    std::string format = "text";
    std::string directory = FORETRACE_SOURCE_DIR "/scenarios";
  };
  auto options = std::make_shared<Options>();
  CLI::App& list =
      add_subcommand(app, "list", "List what there is to use", "foretrace list scenarios");
  list.require_subcommand(1);
  const auto add_format = [options](CLI::App& command) {
    command.add_option("--format", options->format, "text or json")
        ->check(CLI::IsMember({"text", "json"}));
  };
  CLI::App& scenarios = add_subcommand(
      list, "scenarios", "Every shipped scenario and what it shows", "foretrace list scenarios");
  add_format(scenarios);
  scenarios.add_option("--directory", options->directory, "Where to look");
  scenarios.callback([options, &exit_code] {
    print_scenarios(options->directory, options->format);
    exit_code = kDone;
  });
  CLI::App& ops =
      add_subcommand(list, "ops", "Every operation of the scenario language", "foretrace list ops");
  add_format(ops);
  ops.callback([options, &exit_code] {
    print_ops(options->format);
    exit_code = kDone;
  });
}

}  // namespace foretrace
