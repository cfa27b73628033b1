#include "models/machine/node_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/yaml_reader.h"
#include "scenarios/base/values/quantity.h"

namespace foretrace {
namespace {

template <class Enum>
using Names = std::vector<std::pair<std::string, Enum>>;

const Names<nccl::Link> kLinks{{"nvswitch", nccl::Link::NvSwitch},
                               {"nvlink_mesh", nccl::Link::NvLinkMesh},
                               {"nvlink_bridge", nccl::Link::NvLinkBridge},
                               {"pcie_switch", nccl::Link::PciSwitch},
                               {"pcie_host", nccl::Link::PciHost}};
const Names<nccl::Cpu> kCpus{
    {"intel", nccl::Cpu::Intel}, {"amd", nccl::Cpu::Amd}, {"arm", nccl::Cpu::Arm}};
const Names<nccl::Path> kNicPaths{{"pix", nccl::Path::Pix}, {"phb", nccl::Path::Phb}};

template <class Enum>
std::optional<Enum> read_name(MapReader& map, std::string_view key, const Names<Enum>& names) {
  const YamlNode* const node = map.optional(key);
  if (node == nullptr) return {};
  std::vector<std::string> known;
  for (const auto& [name, value] : names) {
    if (name == node->text) return value;
    known.push_back(name);
  }
  map.problems().error(*node, fmt::format("unknown {} '{}'", key, node->text),
                       suggest(node->text, known));
  return {};
}

std::optional<std::uint32_t> read_count(MapReader& map, std::string_view key, std::uint32_t least,
                                        std::uint32_t most) {
  const YamlNode* const node = map.optional(key);
  if (node == nullptr) return {};
  std::uint32_t value = 0;
  const char* const end = node->text.data() + node->text.size();
  const auto [rest, code] = std::from_chars(node->text.data(), end, value);
  if (code == std::errc{} && rest == end && value >= least && value <= most) return value;
  map.problems().error(*node, fmt::format("{}: '{}' is not a count between {} and {}", key,
                                          node->text, least, most));
  return {};
}

std::optional<double> read_rate(MapReader& map, std::string_view key) {
  const YamlNode* const node = map.optional(key);
  if (node == nullptr) return {};
  const Parsed<Quantity> parsed = parse_constant(node->text);
  if (parsed && parsed->unit == kRate && parsed->constant > 0) {
    return parsed->constant.to_double() * 1e12;  // from bytes per picosecond
  }
  map.problems().error(*node, fmt::format("{}: '{}' is not a bandwidth", key, node->text),
                       "write it as 25 GB/s");
  return {};
}

template <class Enum>
std::string name_of(const Names<Enum>& names, Enum value) {
  return std::ranges::find(names, value, &std::pair<std::string, Enum>::second)->first;
}

}  // namespace

NodeFacts read_node_facts(MapReader& node) {
  NodeFacts facts;
  facts.link = read_name(node, "link", kLinks);
  facts.cpu = read_name(node, "cpu", kCpus);
  facts.sockets = read_count(node, "sockets", 1, 8);
  facts.pcie = read_count(node, "pcie", 3, 5);
  facts.nics = read_count(node, "nics", 1, kMostNodeCards);
  facts.nic_bandwidth = read_rate(node, "nic_bandwidth");
  facts.nic_path = read_name(node, "nic_path", kNicPaths);
  facts.capability = read_count(node, "capability", 30, 200);
  facts.nvlinks = read_count(node, "nvlinks", 0, 256);
  facts.bridge_links = read_count(node, "bridge_links", 0, 256);
  return facts;
}

NodeFacts known_facts(const std::vector<std::pair<std::string, std::string>>& words) {
  YamlNode map;
  map.kind = YamlNode::Kind::Map;
  for (const auto& [key, text] : words) {
    if (text.empty()) continue;
    YamlEntry entry;
    entry.key.kind = entry.value.kind = YamlNode::Kind::Scalar;
    entry.key.text = key;
    entry.value.text = text;
    map.entries.push_back(std::move(entry));
  }
  Problems problems{"parts"};
  MapReader reader{map, "node", problems};
  NodeFacts facts = read_node_facts(reader);
  if (problems.error_count() > 0) throw UsageError{render(problems.take(), "")};
  return facts;
}

std::vector<std::pair<std::string, std::string>> node_facts_text(const NodeFacts& facts) {
  std::vector<std::pair<std::string, std::string>> text;
  if (facts.link) text.emplace_back("link", name_of(kLinks, *facts.link));
  if (facts.cpu) text.emplace_back("cpu", name_of(kCpus, *facts.cpu));
  if (facts.sockets) text.emplace_back("sockets", std::to_string(*facts.sockets));
  if (facts.pcie) text.emplace_back("pcie", std::to_string(*facts.pcie));
  if (facts.nics) text.emplace_back("nics", std::to_string(*facts.nics));
  if (facts.nic_bandwidth) {
    text.emplace_back("nic_bandwidth", fmt::format("{:.6g} GB/s", *facts.nic_bandwidth * 1e-9));
  }
  if (facts.nic_path) text.emplace_back("nic_path", name_of(kNicPaths, *facts.nic_path));
  if (facts.capability) text.emplace_back("capability", std::to_string(*facts.capability));
  if (facts.nvlinks) text.emplace_back("nvlinks", std::to_string(*facts.nvlinks));
  if (facts.bridge_links) text.emplace_back("bridge_links", std::to_string(*facts.bridge_links));
  return text;
}

}  // namespace foretrace
