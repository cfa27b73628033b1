#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/machine/parts/composition.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

struct MachineOptions {
  std::string name;
  std::string gpu;
  fs::path from, output;
  std::string link, network;
  std::uint32_t count = 8;
};

PartFolder folder_of(std::string_view part) {
  using enum PartFolder;
  for (const PartFolder folder : {Gpus, Links, Hosts}) {
    if (part.starts_with(folder_name(folder))) return folder;
  }
  return Networks;
}

std::string text_of(const Part& part) {
  std::string text = fmt::format("{} {}: {}\n", part_word(part.folder), part.name, part.summary);
  for (const auto& [key, fact] : part.facts) {
    text += fmt::format("  {:<18} {:<16} {}\n", key, fact_text(fact), fact.source->text);
  }
  return text;
}

/// How many parameters come from where, the most first.
std::string origins_of(const Machine& machine) {
  std::map<std::string, std::size_t> classes, carried;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (!machine.has(param)) continue;
    const ParamValue& value = machine.get(param);
    ++classes[std::string{value.origin ? class_word(*value.origin) : class_name(value.source)}];
    if (value.origin && value.origin->is_carried) ++carried[value.from];
  }
  std::string text = "parameters:";
  for (const auto& [word, count] : classes) text += fmt::format(" {} {};", count, word);
  text.back() = '\n';
  for (const auto& [from, count] : carried) text += fmt::format("  {:>4} {}\n", count, from);
  return text;
}

/// What was judged of times that rest on another GPU's values.
std::string judged_of(const Machine& machine) {
  std::string text;
  for (const Param param : {Param::BlindProducts, Param::BlindKernels, Param::BlindCollectives}) {
    if (!machine.has(param) || !machine.get(param).is_learned()) continue;
    text += fmt::format("  {}: {:.0f} %: {}\n", info(param).key, 100 * machine.get(param).value,
                        machine.get(param).from);
  }
  return text.empty() ? "judged on nothing\n" : "judged on:\n" + text;
}

/// By which a parameter's group is named: "products" of "products.half.rate".
std::string group_of(Param param) {
  const std::string_view key = info(param).key;
  return std::string{key.substr(0, key.find('.'))};
}

/// In what a machine of parts is another one than the file of its GPU, a line for each group.
std::string differences(const Machine& file, const Machine& composed) {
  struct Group {
    std::size_t here = 0, there = 0, other = 0;
  };
  std::map<std::string, Group> groups;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    const bool here = file.has(param), there = composed.has(param);
    if (!here && !there) continue;
    if (here && there && file.get(param).value == composed.get(param).value) continue;
    Group& group = groups[group_of(param)];
    ++(here && there ? group.other : here ? group.here : group.there);
  }
  std::string text;
  for (const auto& [name, group] : groups) {
    text += fmt::format("  {}.*: {} of another value, {} here only, {} there only\n", name,
                        group.other, group.here, group.there);
  }
  return text;
}

/// A file that parts stand on, beside its twin of parts; nothing of other machines.
std::string twin_of(const Machine& machine) {
  if (!machine.parts.empty()) return {};
  for (const std::string& name : part_names(PartFolder::Gpus)) {
    const Part gpu = load_part(PartFolder::Gpus, name);
    if (gpu.word("like") != machine.name || gpu.word("gpu") != machine.gpu_name) continue;
    const std::string twin = fmt::format("{}x{}", machine.gpus_per_node, name);
    const std::string different = differences(machine, load_machine(twin));
    return different.empty()
               ? fmt::format("{} is the same by its parts\n", twin)
               : fmt::format(
                     "{} is such a node by its parts, whose GPU's facts and judged ratios "
                     "stand for what this file has only assumed. It differs in\n{}",
                     twin, different);
  }
  return {};
}

std::string described(const Machine& machine) {
  std::string text = fmt::format("{}: {}\n", machine.name, machine.summary);
  if (!machine.based_on.empty())
    text += fmt::format("nearest machine file: {}\n", machine.based_on);
  for (const std::string& part : machine.parts) {
    text += text_of(load_part(folder_of(part), part.substr(part.find('/') + 1)));
  }
  return text + origins_of(machine) + judged_of(machine) + twin_of(machine);
}

/// A machine's file from a datasheet: a GPU's part, which may leave out all words but `gpu`.
int write_new(const MachineOptions& options) {
  Composition made{.gpus = options.count,
                   .gpu = options.from.string(),
                   .host = {},
                   .link = options.link,
                   .network = options.network,
                   .nodes = {}};
  Parts parts = parts_of(made, options.gpu);
  parts.gpu.name = options.gpu;
  parts.gpu.words.try_emplace("gpu", options.gpu);
  parts.gpu.words.try_emplace("donor", "h200-nvswitch-8");
  const std::string text = machine_text(compose(parts, options.gpu));
  // What no command would read is not written.
  if (const auto read = read_machine(text, options.gpu + ".yaml"); !read) {
    throw UsageError{fmt::format("{}: its facts make no machine that could be simulated\n{}",
                                 options.from.string(), render(read.error(), text))};
  }
  emit({.file = options.output}, text);
  return kDone;
}

int run_machine(const MachineOptions& options) {
  if (options.name == "new") {
    if (options.gpu.empty() || options.from.empty()) {
      throw UsageError{
          "machine new: --gpu NAME and --from FILE are needed\n  hint: FILE has a GPU's "
          "facts, as models/machines/gpus/L40S.yaml"};
    }
    return write_new(options);
  }
  if (!options.gpu.empty() || !options.from.empty() || !options.output.empty()) {
    throw UsageError{"--gpu, --from and -o go with foretrace machine new"};
  }
  print_out("{}", described(load_machine(options.name)));
  return kDone;
}

}  // namespace

void add_machine_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<MachineOptions>();
  CLI::App& command =
      add_subcommand(app, "machine",
                     "What a machine is made of: parts, facts and their sources; or a new one from "
                     "a datasheet's facts",
                     "foretrace machine 8xB200+ib-ndr:64\n"
                     "  foretrace machine new --gpu L40S --from models/machines/gpus/L40S.yaml");
  command.add_option("name", options->name, "A machine, by name or parts; or: new")->required();
  command.add_option("--gpu", options->gpu, "new: the machine's name, and its GPU's")
      ->option_text("NAME");
  command
      .add_option("--from", options->from, "new: facts of a GPU, as models/machines/gpus has them")
      ->check(CLI::ExistingFile.description(""))
      ->option_text("FILE");
  command.add_option("--count", options->count, "new: GPUs of a node")
      ->check(CLI::Range(1, 256).description(""))
      ->capture_default_str();
  command.add_option("--link", options->link, "new: models/machines/links")->option_text("NAME");
  command.add_option("--network", options->network, "new: models/machines/networks")
      ->option_text("NAME");
  command.add_option("-o,--output", options->output, "new: the machine's file; default: stdout")
      ->check(written_file({".yaml"}), "")
      ->option_text("FILE");
  command.callback([options, &exit_code] { exit_code = run_machine(*options); });
}

}  // namespace foretrace
