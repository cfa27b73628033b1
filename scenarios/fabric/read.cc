#include "scenarios/fabric/read.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "scenarios/fabric/text.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/values/quantity.h"

namespace foretrace {
namespace {

constexpr double kMostPorts = 100'000;
constexpr double kMostIndex = 1'000'000;
constexpr double kMostLatency = 1;  // second
constexpr double kMostOversubscription = 1000;

template <class Enum, std::size_t N>
Enum choice(const YamlNode& node, Problems& problems, const FabricValues& values,
            std::string_view what, const std::array<std::pair<std::string_view, Enum>, N>& names) {
  const std::string word = values.word(node);
  std::vector<std::string> known;
  for (const auto& [name, value] : names) {
    if (name == word) return value;
    known.emplace_back(name);
  }
  if (!word.empty()) {
    problems.error(node, fmt::format("unknown {} '{}'", what, word), suggest(word, known));
  }
  return names.front().second;
}

class Values {
 public:
  Values(Problems& problems, const FabricValues& values) : problems_{problems}, values_{values} {}

  std::optional<std::uint32_t> count(const YamlNode* node, std::string_view what, double least,
                                     double most) const {
    if (node == nullptr) return {};
    const auto value = values_.value(*node, kNumber);
    if (!value) return {};
    if (*value >= least && *value <= most && std::floor(*value) == *value) {
      return static_cast<std::uint32_t>(*value);
    }
    problems_.error(*node, fmt::format("{}: '{}' is not a count between {} and {}", what,
                                       node->text, least, most));
    return {};
  }

  double seconds(const YamlNode* node, std::string_view what, double otherwise) const {
    if (node == nullptr) return otherwise;
    const auto value = values_.value(*node, kTime);
    if (!value) return otherwise;
    if (*value >= 0 && *value <= kMostLatency) return *value;
    problems_.error(*node,
                    fmt::format("{}: '{}' is not a time between 0 and 1s", what, node->text));
    return otherwise;
  }

  /// "50%" or 0.5.
  double share(const YamlNode& node, std::string_view what, double most = 1) const {
    YamlNode number = node;
    double unit = 1;
    if (number.text.ends_with('%')) {
      number.text.pop_back();
      unit = 0.01;
    }
    const auto value = values_.value(number, kNumber);
    if (!value) return 1;
    if (*value > 0 && *value * unit <= most) return *value * unit;
    problems_.error(node,
                    fmt::format("{}: '{}' is not a share above 0 % and up to {:.0f} %", what,
                                node.text, most * 100),
                    "write it as 50%");
    return 1;
  }

  /// "2:1", or 2.
  double oversubscription(const YamlNode* node) const {
    if (node == nullptr) return 1;
    YamlNode number = *node;
    if (number.text.ends_with(":1")) number.text.resize(number.text.size() - 2);
    const auto value = values_.value(number, kNumber);
    if (!value) return 1;
    if (*value >= 1 && *value <= kMostOversubscription) return *value;
    problems_.error(*node,
                    fmt::format("oversubscription: '{}' is not between 1:1 and 1000:1", node->text),
                    "2:1 is twice as much towards the nodes as towards the spines");
    return 1;
  }

 private:
  Problems& problems_;
  const FabricValues& values_;
};

MachineFault read_fault(const YamlNode& node, Problems& problems, const FabricValues& values) {
  const Values read{problems, values};
  MapReader map{node, "a fault", problems};
  MachineFault fault;
  fault.line = node.line;
  fault.column = node.column;
  fault.node = read.count(map.optional("node"), "node", 0, kMostIndex);
  using enum MachineFault::Part;
  constexpr std::array<std::pair<std::string_view, MachineFault::Part>, 4> kParts{
      {{"nic", Nic}, {"gpu", Gpu}, {"link", Link}, {"leaf", Leaf}}};
  int parts = 0;
  for (const auto& [name, part] : kParts) {
    const YamlNode* const of = map.optional(name);
    if (of == nullptr) continue;
    ++parts;
    fault.part = part;
    if (of->text != "all") fault.index = read.count(of, name, 0, kMostIndex);
  }
  if (parts != 1) {
    problems.error(node, "a fault is of one nic, gpu, link (a GPU's NVLinks) or leaf",
                   "{node: 7, nic: 3, bandwidth: 50%}");
  }
  const bool is_gpu = fault.part == Gpu;
  const YamlNode* const share = map.optional(is_gpu ? "speed" : "bandwidth");
  const YamlNode* const jitter = is_gpu ? map.optional("jitter") : nullptr;
  const YamlNode* const lost = fault.part == Nic ? map.optional("lost") : nullptr;
  if (share != nullptr) fault.share = read.share(*share, is_gpu ? "speed" : "bandwidth");
  if (jitter != nullptr) fault.jitter = read.share(*jitter, "jitter", 10);
  if (lost != nullptr) {
    if (lost->text != "true") problems.error(*lost, "'lost' is true or left out");
    fault.share = 0;
  }
  const int given = (share != nullptr) + (jitter != nullptr) + (lost != nullptr);
  if (parts == 1 && (given == 0 || (lost != nullptr && share != nullptr))) {
    const std::string_view needs = is_gpu              ? "speed: 80% or jitter: 5%"
                                   : fault.part == Nic ? "bandwidth: 50% or lost: true"
                                                       : "bandwidth: 50%";
    problems.error(node, fmt::format("the fault needs {}", needs));
  }
  if (fault.part == Leaf && fault.node) {
    problems.error(node, "a leaf is of no node", "leaf: 0 is the first of all");
  }
  map.finish();
  return fault;
}

}  // namespace

FabricValues plain_fabric_values(Problems& problems) {
  const auto value = [&problems](const YamlNode& node, Unit unit) -> std::optional<double> {
    const Parsed<Quantity> parsed = parse_constant(node.text);
    if (!parsed) {
      problems.error(node, parsed.error().message, parsed.error().hint, parsed.error().offset);
      return {};
    }
    return fabric_value(*parsed, unit, node, problems);
  };
  return {value, [](const YamlNode& node) { return node.text; }};
}

std::optional<double> fabric_value(const Quantity& quantity, Unit unit, const YamlNode& node,
                                   Problems& problems) {
  const auto number = to_double(quantity);
  if (number && quantity.unit == unit) return unit == kTime ? *number * 1e-12 : *number;
  problems.error(node, fmt::format("{} is needed here, and '{}' is {}", describe(unit), node.text,
                                   number ? describe(quantity.unit) : "not the same everywhere"));
  return {};
}

Fabric read_fabric(const YamlNode& node, Problems& problems, const FabricValues& values) {
  const Values read{problems, values};
  Fabric fabric;
  if (node.kind == YamlNode::Kind::Scalar) {
    fabric.kind = choice(node, problems, values, "kind of fabric", kFabricKinds);
    return fabric;
  }
  MapReader map{node, "a fabric", problems};
  if (const YamlNode* kind = map.required("kind")) {
    fabric.kind = choice(*kind, problems, values, "kind of fabric", kFabricKinds);
  }
  // What an unknown kind would have is not an error of its own.
  const bool is_known = map.is_sound();
  const bool has_leaves = fabric.kind != FabricKind::None || !is_known;
  if (const YamlNode* leaf = has_leaves ? map.optional("leaf") : nullptr) {
    MapReader keys{*leaf, "a leaf", problems};
    const auto ports = read.count(keys.optional("ports"), "ports", 1, kMostPorts);
    fabric.leaf_ports = ports.value_or(fabric.leaf_ports);
    fabric.leaf_latency = read.seconds(keys.optional("latency"), "latency", fabric.leaf_latency);
    keys.finish();
  }
  if (const YamlNode* spine = has_leaves ? map.optional("spine") : nullptr) {
    MapReader keys{*spine, "a spine", problems};
    fabric.oversubscription = read.oversubscription(keys.optional("oversubscription"));
    keys.finish();
  }
  if (fabric.kind == FabricKind::Dragonfly || !is_known) {
    if (const YamlNode* group = map.optional("group")) {
      MapReader keys{*group, "a group", problems};
      const auto leaves = read.count(keys.optional("leaves"), "leaves", 1, kMostPorts);
      fabric.group_leaves = leaves.value_or(fabric.group_leaves);
      keys.finish();
    }
  }
  map.finish();
  return fabric;
}

std::vector<MachineFault> read_faults(const YamlNode& node, Problems& problems,
                                      const FabricValues& values) {
  std::vector<MachineFault> faults;
  if (node.kind != YamlNode::Kind::Sequence) {
    problems.error(node, "'faults' is a list", "[{node: 7, nic: 3, bandwidth: 50%}]");
  }
  for (const YamlNode& item : node.items) faults.push_back(read_fault(item, problems, values));
  return faults;
}

Placement read_placement(const YamlNode& node, Problems& problems, const FabricValues& values) {
  return choice(node, problems, values, "placement", kPlacements);
}

Placement parse_placement(const std::string& name) {
  for (const auto& [known, placement] : kPlacements) {
    if (known == name) return placement;
  }
  throw UsageError{fmt::format("unknown placement '{}'\n  hint: {}", name,
                               suggest(name, {"block", "round_robin"}))};
}

}  // namespace foretrace
