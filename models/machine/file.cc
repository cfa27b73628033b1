// models/machines/NAME.yaml: one line per parameter, read as strictly as a scenario.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>

#include "models/machine/machine.h"
#include "scenarios/text/data_directory.h"
#include "scenarios/text/errors.h"
#include "scenarios/text/text_file.h"
#include "scenarios/text/yaml_reader.h"
#include "scenarios/values/quantity.h"

namespace foretrace {
namespace {

constexpr std::string_view kFlopSuffix = "FLOP/s";

/// "49.5 TFLOP/s" as a plain number of FLOP/s; other texts unchanged.
std::string without_flop_unit(std::string text) {
  if (!text.ends_with(kFlopSuffix)) return text;
  text.resize(text.size() - kFlopSuffix.size());
  while (text.ends_with(' ')) text.pop_back();
  std::string_view scale = "1";
  if (text.ends_with('T')) scale = "1000000000000";
  if (text.ends_with('G')) scale = "1000000000";
  if (scale != "1") text.pop_back();
  return fmt::format("{} * {}", text, scale);
}

Unit expected(ParamUnit unit) {
  switch (unit) {
    case ParamUnit::Time:
      return kTime;
    case ParamUnit::Size:
      return kSize;
    case ParamUnit::Rate:
      return kRate;
    case ParamUnit::Count:
    case ParamUnit::FlopRate:
    case ParamUnit::Ratio:
    case ParamUnit::NvlinkShare:
      break;
  }
  return kNumber;
}

/// From a quantity's base units (bytes, picoseconds) to SI.
double to_si(const Quantity& quantity, Unit unit) {
  const auto value = quantity.constant.convert_to<double>();
  if (unit == kTime) return value * 1e-12;
  if (unit == kRate) return value * 1e12;
  return value;
}

constexpr double kLargestSpread = 10;
constexpr std::uint32_t kMostNodes = 100'000;
constexpr std::uint32_t kMostGpusOfANode = 256;

struct PossibleRange {
  double least, most;
};

/// In SI units. What no machine exceeds keeps everything that is computed of it finite.
PossibleRange possible_range(ParamUnit unit) {
  switch (unit) {
    case ParamUnit::Time:
      return {0, 3600};
    case ParamUnit::Count:
      return {0, 0x1p31};
    case ParamUnit::Size:
      return {1, 0x1p60};
    case ParamUnit::Rate:
      return {1e3, 1e18};
    case ParamUnit::FlopRate:
      return {1e6, 1e21};
    case ParamUnit::Ratio:
    case ParamUnit::NvlinkShare:
      break;
  }
  return {1e-9, 1e9};
}

std::string_view si_unit(ParamUnit unit) {
  switch (unit) {
    case ParamUnit::Time:
      return " s";
    case ParamUnit::Size:
      return " B";
    case ParamUnit::Rate:
      return " B/s";
    case ParamUnit::FlopRate:
      return " FLOP/s";
    case ParamUnit::Count:
    case ParamUnit::Ratio:
    case ParamUnit::NvlinkShare:
      break;
  }
  return "";
}

class MachineReader {
 public:
  MachineReader(std::string_view text, const std::string& file) : problems_{file} {
    root_ = parse_yaml(text, problems_);
  }

  Checked<Machine> read() {
    MapReader map{root_, "a machine file", problems_};
    if (const YamlNode* version = map.required("schema_version"); version && version->text != "2") {
      problems_.error(
          *version, fmt::format("schema_version {} is not known", version->text),
          "this foretrace reads version 2: sources have ids, models/machines/README.md");
      return tl::unexpected{problems_.take()};
    }
    if (const YamlNode* base = map.optional("based_on")) read_base(*base);
    if (const YamlNode* name = map.required("name")) machine_.name = name->text;
    if (const YamlNode* summary = map.optional("summary")) machine_.summary = summary->text;
    if (const YamlNode* version = map.optional("nccl_version")) {
      machine_.nccl_version = version->text;
    }
    if (const YamlNode* node = map.required("node")) read_node(*node);
    if (!machine_.based_on.empty()) inherit();
    if (const YamlNode* sources = map.optional("sources")) {
      sources_node_ = sources;
      sources_ = read_sources(*sources, problems_);
    }
    const YamlNode* parameters =
        machine_.based_on.empty() ? map.required("parameters") : map.optional("parameters");
    if (parameters != nullptr) read_parameters(*parameters);
    map.finish();
    if (sources_node_ != nullptr) refuse_unused_sources();
    if (problems_.error_count() > 0) return tl::unexpected{problems_.take()};
    return std::move(machine_);
  }

 private:
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
    // A base stands on its own, so nothing can go in circles.
    if (text.find("\nbased_on:") != std::string::npos) {
      problems_.error(node, fmt::format("'{}' is based on another machine itself", node.text),
                      "name the machine that it is based on");
      return;
    }
    const Checked<Machine> base = read_machine(text, file.string());
    if (!base) throw UsageError{render(base.error(), text)};
    machine_.based_on = node.text;
    machine_.nccl_version = base->nccl_version;
    base_ = *base;
  }

  /// What was measured on the base was learned for its kind of GPU: another kind's measurements of
  /// the same scenarios are as good a judge as any.
  void inherit() {
    const bool same_gpu = base_.gpu_name == machine_.gpu_name;
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const auto param = static_cast<Param>(i);
      if (base_.has(param)) machine_.set(param, inherited_value(base_, param, same_gpu));
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
    if (const YamlNode* gpu = map.required("gpu")) machine_.gpu_name = gpu->text;
    machine_.node = read_node_facts(map);
    map.finish();
  }

  void read_parameters(const YamlNode& node) {
    MapReader map{node, "parameters", problems_};
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const auto param = static_cast<Param>(i);
      if (const YamlNode* entry = map.optional(info(param).key)) read_parameter(param, *entry);
    }
    map.finish();
  }

  void read_parameter(Param param, const YamlNode& node) {
    MapReader map{node, fmt::format("parameter {}", info(param).key), problems_};
    ParamValue value;
    if (const YamlNode* text = map.required("value")) {
      value.value = read_number(*text, info(param).unit);
      check_range(param, value.value, *text);
    }
    if (const YamlNode* source = map.required("source")) take_source(*source, value);
    if (const YamlNode* from = map.optional("from")) {
      problems_.error(*from, "a parameter names its source and says no more",
                      "sources: {ID: {class: assumed, text: \"...\"}} at the top, source: ID here");
    }
    if (const YamlNode* range = map.optional("range")) value.range = range->text;
    if (const YamlNode* spread = map.optional("spread")) {
      value.spread = read_number(*spread, ParamUnit::Ratio);
      if (value.spread < 0 || value.spread > kLargestSpread) {
        problems_.error(*spread, fmt::format("a spread lies between 0 and {}", kLargestSpread));
      }
    }
    map.finish();
    machine_.set(param, std::move(value));
  }

  void check_range(Param param, double value, const YamlNode& node) {
    const auto [least, most] = possible_range(info(param).unit);
    if (value >= least && value <= most) return;
    problems_.error(node, value <= 0
                              ? fmt::format("{} must be positive", info(param).key)
                              : fmt::format("{} lies between {:g} and {:g}{}", info(param).key,
                                            least, most, si_unit(info(param).unit)));
  }

  double read_number(const YamlNode& node, ParamUnit unit) {
    const NameLookup no_names = [](std::string_view name) -> Parsed<Quantity> {
      return tl::unexpected{QuantityError{fmt::format("'{}' means nothing here", name), {}, 0}};
    };
    const std::string text = unit == ParamUnit::FlopRate ? without_flop_unit(node.text) : node.text;
    const Parsed<Quantity> parsed = parse_quantity(text, no_names);
    if (!parsed) {
      problems_.error(node, parsed.error().message, parsed.error().hint, parsed.error().offset);
      return 1;
    }
    if (parsed->unit != expected(unit)) {
      problems_.error(
          node,
          fmt::format("expected {}, found {}", describe(expected(unit)), describe(parsed->unit)),
          unit == ParamUnit::NvlinkShare ? "a share of nvlink.bandwidth, such as 371/450" : "");
      return 1;
    }
    return to_si(*parsed, expected(unit));
  }

  std::uint32_t read_count(const YamlNode& node, std::uint32_t most) {
    const double value = read_number(node, ParamUnit::Count);
    if (value >= 1 && value <= most) return static_cast<std::uint32_t>(value);
    problems_.error(node, fmt::format("{} is not a count between 1 and {}", node.text, most));
    return 1;
  }

  void take_source(const YamlNode& node, ParamValue& value) {
    std::vector<std::string> known;
    for (const auto& source : sources_) {
      known.push_back(source->id);
      if (source->id != node.text) continue;
      value.origin = source;
      value.source = source->kind;
      value.from = source->text;
      used_sources_.insert(source->id);
      return;
    }
    problems_.error(node, fmt::format("no source '{}' stands under sources:", node.text),
                    known.empty() ? "sources: {ID: {class: assumed, text: \"...\"}} at the top"
                                  : suggest(node.text, known));
  }

  void refuse_unused_sources() {
    for (const YamlEntry& entry : sources_node_->entries) {
      if (used_sources_.contains(entry.key.text)) continue;
      problems_.error(entry.key, fmt::format("no parameter names the source '{}'", entry.key.text),
                      "take it out");
    }
  }

  Problems problems_;
  YamlNode root_;
  Machine machine_;
  Machine base_;
  const YamlNode* sources_node_ = nullptr;
  std::vector<std::shared_ptr<const Source>> sources_;
  std::set<std::string> used_sources_;
};

}  // namespace

Checked<Machine> read_machine(std::string_view text, const std::string& file) {
  return MachineReader{text, file}.read();
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

std::filesystem::path machine_directory() {
  if (const char* set = std::getenv("FORETRACE_MACHINES")) return set;
  return data_directory() / "models" / "machines";
}

std::vector<std::string> machine_names() {
  const std::filesystem::path directory = machine_directory();
  std::error_code wrong;
  std::filesystem::directory_iterator files{directory, wrong};
  if (wrong) {
    throw UsageError{
        fmt::format("{}: {}\n  hint: FORETRACE_MACHINES names the directory of machine "
                    "files",
                    directory.string(), wrong.message())};
  }
  std::vector<std::string> names;
  for (const auto& entry : files) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

Machine load_machine(const std::string& name_or_path) {
  std::filesystem::path path{name_or_path};
  if (path.extension() != ".yaml") {
    path = machine_directory() / (name_or_path + ".yaml");
    if (!std::filesystem::exists(path)) {
      throw UsageError{fmt::format("unknown machine '{}'\n  hint: {}", name_or_path,
                                   suggest(name_or_path, machine_names()))};
    }
  }
  const std::string text = read_text_file(path);
  const Checked<Machine> machine = read_machine(text, path.string());
  if (!machine) throw UsageError{render(machine.error(), text)};
  return *machine;
}

}  // namespace foretrace
