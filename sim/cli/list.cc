#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/machine/machine.h"
#include "models/machine/parts/composition.h"
#include "scenarios/architecture/config.h"
#include "scenarios/architecture/counts.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/print.h"
#include "scenarios/fabric/text.h"
#include "scenarios/program/op_catalogue.h"
#include "scenarios/program/ops.h"
#include "sim/cli/commands.h"

namespace foretrace {
namespace {

struct ListOptions {
  std::string what;
  std::string format = "text";
  bool with_keys = false;
};

std::vector<std::string> scenario_files() {
  data_directory();  // throws when there is none
  std::vector<std::string> files;
  for (const std::filesystem::path& file : shipped_scenarios()) files.push_back(file.string());
  return files;
}

/// "5 fit, 1 assumed": of the shipped machines, by where they have it from.
std::string shipped_classes(const std::vector<Machine>& machines, Param param) {
  std::array<std::size_t, 4> counts{};
  for (const Machine& machine : machines) {
    if (machine.has(param)) ++counts[static_cast<std::size_t>(machine.get(param).source)];
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    parts.push_back(fmt::format("{} {}", counts[i], class_name(static_cast<ParameterClass>(i))));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> parameter_keys(bool with_classes) {
  std::vector<Machine> machines;
  if (with_classes) {
    for (const std::string& name : machine_names()) machines.push_back(load_machine(name));
  }

  std::vector<std::string> keys;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const ParamInfo& parameter = info(static_cast<Param>(i));
    keys.push_back(fmt::format("{}: {}", parameter.key, parameter.text));
    const std::string classes = shipped_classes(machines, static_cast<Param>(i));
    if (!classes.empty()) keys.back() += fmt::format(" ({})", classes);
  }
  return keys;
}

template <std::size_t... I>
std::vector<std::string> kinds(std::index_sequence<I...>) {
  return {kind_name(std::variant_alternative_t<I, AnyOp>{})...};
}

std::vector<std::string> op_names() {
  std::vector<std::string> all = kinds(std::make_index_sequence<std::variant_size_v<AnyOp>>{});
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

/// Every operation that a scenario can hold, with its keys.
std::vector<OpDescription> described_ops() {
  std::vector<OpDescription> all = describe_operations();
  std::ranges::sort(all, {}, &OpDescription::name);
  return all;
}

void print_ops_with_keys(const std::string& format) {
  auto rows = nlohmann::ordered_json::array();
  for (const OpDescription& op : described_ops()) {
    if (format == "text") print_out("{}: {{{}}}\n    {}\n", op.name, op.keys, op.summary);
    rows.push_back({{"name", op.name}, {"keys", op.keys}, {"summary", op.summary}});
  }
  if (format == "json") print_out("{}\n", rows.dump(2));
}

/// How a machine is written that no file describes, and of what parts.
std::vector<std::string> composition_lines() {
  using enum PartFolder;
  std::vector<std::string> lines{
      "",
      "Others are composed: COUNTxGPU[@HOST][/LINK][+NETWORK[:NODES]], as 8xB200+ib-ndr:64 or "
      "4xL40S/pcie4+tcp-100g. What a name leaves out is what its GPU is sold with; foretrace "
      "machine NAME says it."};
  for (const PartFolder folder : {Gpus, Hosts, Links, Networks}) {
    lines.push_back(
        fmt::format("{}: {}", folder_name(folder), fmt::join(part_names(folder), ", ")));
  }
  std::vector<std::string> named;
  for (const NamedComposition& one : named_compositions()) named.push_back(one.name);
  lines.push_back(fmt::format("clouds and appliances: {}; p5.48xlarge:16 are sixteen nodes",
                              fmt::join(named, ", ")));
  return lines;
}

/// With how much of them is fitted, published, a datasheet's or assumed.
std::vector<std::string> machine_lines() {
  std::vector<std::string> lines;
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    lines.push_back(fmt::format("{}: {} ({})", name, machine.summary, class_counts(machine)));
    if (machine.fabric) lines.back() += fmt::format(", fabric {}", fabric_text(*machine.fabric));
    if (!machine.faults.empty()) {
      lines.back() += fmt::format(", faults {}", faults_text(machine.faults));
    }
  }
  const std::vector<std::string> composed = composition_lines();
  lines.insert(lines.end(), composed.begin(), composed.end());
  return lines;
}

/// With how each is understood.
std::vector<std::string> model_lines() {
  std::vector<std::string> lines;
  for (const std::string& name : training::shipped_models()) {
    lines.push_back(fmt::format("{}: {}", name, understood(training::shipped_model(name))));
  }
  return lines;
}

/// `for_people`: with what each explains, and what it gains.
std::vector<std::string> term_lines(bool for_people) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < kTermCount; ++i) {
    const TermInfo& term = info(static_cast<Term>(i));
    lines.emplace_back(term.id);
    if (!for_people) continue;
    lines.back() += fmt::format(" ({}): {}; models/evidence/{}; moves {}", stage_name(term.stage),
                                term.explains, term.evidence, term.gain);
  }
  return lines;
}

/// `for_people`: with how much is fitted, published, a datasheet's or assumed.
std::vector<std::string> names(const std::string& what, bool for_people) {
  if (what == "scenarios") return scenario_files();
  if (what == "data") return {data_directory().string()};
  if (what == "machines") return for_people ? machine_lines() : machine_names();
  if (what == "models") return for_people ? model_lines() : training::shipped_models();
  if (what == "parameters") return parameter_keys(for_people);
  if (what == "terms") return term_lines(for_people);
  return op_names();
}

}  // namespace

void add_list_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ListOptions>();
  CLI::App& command = add_subcommand(
      app, "list", "What there is: scenarios, machines, models, ops, parameters, terms, and where",
      "foretrace list machines");
  command
      .add_option(
          "what", options->what,
          "scenarios, machines, models, ops, parameters, terms, or data: the directory that they "
          "are in")
      ->required()
      ->check(
          CLI::IsMember({"scenarios", "machines", "models", "ops", "parameters", "terms", "data"}));
  command.add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command.add_flag("--keys", options->with_keys,
                   "ops: what each takes, optional keys in brackets ('id' goes with all), and what "
                   "it does");
  command.callback([options, &exit_code] {
    exit_code = kDone;
    if (options->with_keys) {
      if (options->what != "ops") throw UsageError{"--keys goes with ops"};
      print_ops_with_keys(options->format);
      return;
    }
    const std::vector<std::string> all = names(options->what, options->format == "text");
    if (options->format == "json") {
      print_out("{}\n", nlohmann::json(all).dump(2));
    } else {
      for (const std::string& name : all) print_out("{}\n", name);
    }
    exit_code = kDone;
  });
}

}  // namespace foretrace
