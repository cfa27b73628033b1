// models/machines/NAME.yaml: one line per parameter, read as strictly as a scenario.
#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <cctype>
#include <cmath>
#include <set>

#include "models/machine/link_rules.h"
#include "models/machine/machine.h"
#include "models/machine/parameter_reader.h"
#include "models/machine/parts/composition.h"
#include "models/machine/parts/gpu_facts.h"
#include "models/machine/read_once.h"
#include "models/machine/scaling.h"
#include "models/machine/value_text.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/words.h"
#include "scenarios/base/text/yaml_reader.h"
#include "scenarios/fabric/read.h"

namespace foretrace {
namespace {

constexpr std::size_t kLongestName = 200;
constexpr std::uint32_t kMostNodes = 100'000;
constexpr std::uint32_t kMostGpusOfANode = 256;
constexpr int kMostBases = 3;  // so nothing goes in circles

class MachineReader {
 public:
  /// `depth`: how many files are based on this one.
  MachineReader(std::string_view text, const std::string& file, int depth)
      : problems_{file}, depth_{depth} {
    root_ = parse_yaml(text, problems_);
  }

  Checked<Machine> read(Diagnostics* warnings) {
    MapReader map{root_, "a machine file", problems_};
    if (const YamlNode* version = map.required("schema_version"); version && version->text != "2") {
      problems_.error(
          *version, fmt::format("schema_version {} is not known", version->text),
          "this foretrace reads version 2: sources have ids, models/machines/README.md");
      return tl::unexpected{problems_.take()};
    }
    if (const YamlNode* base = map.optional("based_on")) read_base(*base);
    if (const YamlNode* without = map.optional("without")) read_without(*without);
    if (const YamlNode* name = map.required("name")) read_name(*name);
    if (const YamlNode* summary = map.optional("summary")) {
      if (summary->kind != YamlNode::Kind::Scalar) problems_.error(*summary, "'summary' is a text");
      machine_.summary = summary->text;
    }
    if (const YamlNode* version = map.optional("nccl_version")) {
      machine_.nccl_version = version->text;
    }
    if (const YamlNode* node = map.required("node")) read_node(*node);
    const FabricValues plain = plain_fabric_values(problems_);
    if (const YamlNode* fabric = map.optional("fabric")) {
      machine_.fabric = read_fabric(*fabric, problems_, plain);
    }
    if (const YamlNode* faults = map.optional("faults")) {
      machine_.faults = read_faults(*faults, problems_, plain);
    }
    if (!machine_.based_on.empty()) inherit();
    if (const YamlNode* sources = map.optional("sources")) {
      sources_node_ = sources;
      sources_ = read_sources(*sources, problems_);
    }
    const YamlNode* parameters =
        machine_.based_on.empty() ? map.required("parameters") : map.optional("parameters");
    if (parameters != nullptr) read_parameters(*parameters);
    if (const YamlNode* scale = map.optional("scale")) read_scale(*scale);
    map.finish();
    take_gpu_facts(machine_, own_);
    if (sources_node_ != nullptr) warn_of_unused_sources();
    if (problems_.error_count() > 0) return tl::unexpected{problems_.take()};
    if (warnings != nullptr) *warnings = problems_.take();
    return std::move(machine_);
  }

 private:
  void read_name(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::Scalar || node.text.empty()) {
      problems_.error(node, "'name' is a word or two", "name: my-h100-8");
    }
    const bool is_line = in_one_line(node.text) == node.text;
    if (!is_line || node.text.size() > kLongestName) {
      problems_.error(node, fmt::format("'name' is one line, {} bytes at most", kLongestName));
    }
    machine_.name = node.text;
  }

  /// Another machine's parameters are assumptions here, whatever they are there.
  void read_base(const YamlNode& node) {
    const auto names = machine_names();
    if (std::ranges::find(names, node.text) == names.end()) {
      problems_.error(node, fmt::format("unknown machine '{}'", node.text),
                      suggest(node.text, names));
      return;
    }
    const std::filesystem::path file = machine_directory() / (node.text + ".yaml");
    const std::string text = read_text_file(file);
    if (depth_ == kMostBases) {
      problems_.error(node, fmt::format("more than {} files are based on one another", kMostBases),
                      "name the machine that stands on its own");
      return;
    }
    base_ = read_once(file.string(), depth_ + 1, text, [&] {
      const Checked<Machine> base = MachineReader{text, file.string(), depth_ + 1}.read(nullptr);
      if (!base) throw UsageError{render(base.error(), text)};
      return *base;
    });
    machine_.based_on = node.text;
    machine_.nccl_version = base_.nccl_version;
  }

  /// What was measured on the base was learned for its kind of GPU: another kind's measurements of
  /// the same scenarios are as good a judge as any.
  void inherit() {
    const bool same_gpu = base_.gpu_name == machine_.gpu_name;
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const auto param = static_cast<Param>(i);
      if (!base_.has(param) || is_left_out(info(param).key)) continue;
      machine_.set(param, inherited_value(base_, param, same_gpu));
    }
    set_rates_of_links(base_, machine_);
    if (const auto tables = tables_file(base_, machine_))
      read_over(machine_, "link_rules", *tables);
    if (const auto link = link_file(base_, machine_)) read_over(machine_, "link_rules", *link);
  }

 public:
  /// This file's parameters over those of `machine`, without those that it takes away.
  Diagnostics put_over(Machine& machine) {
    MapReader map{root_, "a file of rules", problems_};
    map.required("schema_version");
    if (const YamlNode* without = map.optional("without")) {
      for (const YamlNode& item : without->items) without_.push_back(item.text);
    }
    if (const YamlNode* sources = map.optional("sources")) {
      sources_ = read_sources(*sources, problems_);
    }
    machine_ = machine;
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const auto param = static_cast<Param>(i);
      if (is_left_out(info(param).key)) machine_.leave_out(param);
    }
    if (const YamlNode* parameters = map.optional("parameters")) read_parameters(*parameters);
    map.finish();
    machine = machine_;
    return problems_.take();
  }

 private:
  bool is_left_out(std::string_view key) const {
    return std::ranges::any_of(without_, [&](const std::string& family) {
      return key == family ||
             (key.starts_with(family) && key.substr(family.size()).starts_with("."));
    });
  }

  /// Families of parameters, by the first words of their names, that the base has and this has not.
  void read_without(const YamlNode& node) {
    for (const YamlNode& item : node.items) {
      const std::string& family = item.text;
      bool is_known = false;
      for (std::size_t i = 0; i < kParamCount; ++i) {
        is_known = is_known || info(static_cast<Param>(i)).key.starts_with(family + ".");
      }
      if (!is_known) problems_.error(item, fmt::format("no parameter begins with '{}.'", family));
      without_.push_back(family);
    }
    if (node.items.empty()) {
      problems_.error(node, "'without' is a list of families of parameters", "[products]");
    }
  }

  /// Facts by whose ratio the base's rates are carried over.
  void read_scale(const YamlNode& node) {
    std::vector<std::string> facts;
    for (const YamlNode& item : node.items) {
      facts.push_back(item.text);
      const auto& known = scaled_facts();
      if (std::ranges::find(known, item.text) != known.end()) continue;
      problems_.error(item, fmt::format("'scale' has no '{}'", item.text),
                      suggest(item.text, known));
    }
    if (node.items.empty()) {
      problems_.error(node, "'scale' is a list of facts", "[arithmetic, memory]");
    } else if (machine_.based_on.empty()) {
      problems_.error(node, "'scale' needs a machine whose rates are carried over", "based_on");
    } else {
      carry_over(base_, facts, own_, machine_);
    }
  }

  void read_node(const YamlNode& node) {
    MapReader map{node, "node", problems_};
    if (const YamlNode* count = map.optional("count")) {
      machine_.nodes = read_count(*count, kMostNodes);
    }
    if (const YamlNode* gpus = map.required("gpus")) {
      machine_.gpus_per_node = read_count(*gpus, kMostGpusOfANode);
    }
    if (const YamlNode* gpu = map.required("gpu")) {
      if (gpu->kind != YamlNode::Kind::Scalar || gpu->text.empty()) {
        problems_.error(*gpu, "'gpu' is a name");
      }
      machine_.gpu_name = gpu->text;
    }
    machine_.node = read_node_facts(map);
    map.finish();
  }

  void read_parameters(const YamlNode& node) {
    for (auto& [param, value] : read_parameter_entries(node, sources_, problems_, &used_sources_)) {
      own_.set(static_cast<std::size_t>(param));
      machine_.set(param, std::move(value));
    }
  }

  std::uint32_t read_count(const YamlNode& node, std::uint32_t most) {
    const double value = read_value(node, ParamUnit::Count, problems_);
    if (value >= 1 && value <= most && value == std::floor(value))
      return static_cast<std::uint32_t>(value);
    problems_.error(node, fmt::format("{} is not a count between 1 and {}", node.text, most));
    return 1;
  }

  void warn_of_unused_sources() {
    for (const YamlEntry& entry : sources_node_->entries) {
      if (used_sources_.contains(entry.key.text)) continue;
      problems_.warning(entry.key,
                        fmt::format("no parameter names the source '{}'", entry.key.text),
                        "take it out, unless a parameter shall name it again");
    }
  }

  Problems problems_;
  YamlNode root_;
  Machine machine_;
  Machine base_;
  int depth_ = 0;
  std::vector<std::string> without_;
  std::bitset<kParamCount> own_;  ///< parameters that this file gives
  const YamlNode* sources_node_ = nullptr;
  std::vector<std::shared_ptr<const Source>> sources_;
  std::set<std::string> used_sources_;
};

}  // namespace

Checked<Machine> read_machine(std::string_view text, const std::string& file,
                              Diagnostics* warnings) {
  return MachineReader{text, file, 0}.read(warnings);
}

void read_over(Machine& machine, const std::string& folder, const std::string& name) {
  const std::filesystem::path file = machine_directory() / folder / (name + ".yaml");
  const std::string text = read_text_file(file);
  const auto problems = MachineReader{text, file.string(), kMostBases}.put_over(machine);
  if (!problems.empty()) throw UsageError{render(problems, text)};
}

ParamValue inherited_value(const Machine& base, Param param, bool same_gpu) {
  ParamValue value = base.get(param);
  Source source{.id = fmt::format("as_{}", base.name),
                .text = fmt::format("as {}", base.name),
                .learned_from = {},
                .command = {}};
  if (same_gpu && value.origin && !value.origin->learned_from.empty()) {
    source.id = fmt::format("{}_{}", source.id, value.origin->id);
    source.learned_from = value.origin->learned_from;
  }
  value.source = source.kind;
  value.from = source.text;
  value.range.clear();
  value.origin = std::make_shared<const Source>(std::move(source));
  return value;
}

}  // namespace foretrace
