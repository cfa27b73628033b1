#include "models/machine/parts/composition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/yaml_reader.h"

namespace foretrace {
namespace {

constexpr std::string_view kForm =
    "COUNTxGPU[/LINK][+NETWORK[:NODES]]: 8xB200+ib-ndr:64, 4xL40S/pcie4+tcp-100g";
constexpr std::uint32_t kMostGpusNamed = 256, kMostNodesNamed = 100'000;

[[noreturn]] void refuse(const std::string& name, std::size_t column, const std::string& what,
                         const std::string& hint) {
  throw UsageError{
      fmt::format("machine: {}\n  {}\n  {:>{}}\n  hint: {}", what, name, "^", column + 1, hint)};
}

std::uint32_t count_in(const std::string& name, std::size_t begin, std::size_t end,
                       std::uint32_t most, const char* what) {
  std::uint32_t count = 0;
  const auto [rest, code] = std::from_chars(name.data() + begin, name.data() + end, count);
  if (code != std::errc{} || rest != name.data() + end || count < 1 || count > most) {
    refuse(name, begin,
           fmt::format("'{}' is no number of {} between 1 and {}", name.substr(begin, end - begin),
                       what, most),
           std::string{kForm});
  }
  return count;
}

/// A part's name between two places of the machine's; an empty one is a mistake.
std::string part_in(const std::string& name, std::size_t begin, std::size_t end,
                    PartFolder folder) {
  if (begin >= end)
    refuse(name, begin, fmt::format("a {} is missing", part_word(folder)), std::string{kForm});
  const std::string part = name.substr(begin, end - begin);
  if (part.ends_with(".yaml")) return part;
  if (const auto found = find_part(folder, part)) return *found;
  const std::vector<std::string> known = part_names(folder);
  const std::string nearest = suggest(part, known);
  refuse(name, begin, fmt::format("unknown {} '{}'", part_word(folder), part),
         nearest.empty() ? fmt::format("{}", fmt::join(known, ", ")) : nearest);
}

bool goes_with(const Part& link, const Part& gpu) {
  const std::string list = "," + link.word("goes_with") + ",";
  if (list == ",,") return true;
  // A user's own GPU: what kind of links it has is what its file says.
  if (!find_part(PartFolder::Gpus, gpu.name) && gpu.value("nvlinks")) return true;
  const std::string vendor = gpu.word("vendor").empty() ? "nvidia" : gpu.word("vendor");
  return list.find("," + gpu.name + ",") != std::string::npos ||
         list.find("," + vendor + ",") != std::string::npos;
}

/// Links that can join this GPU.
std::vector<std::string> links_of(const Part& gpu) {
  std::vector<std::string> names;
  for (const std::string& name : part_names(PartFolder::Links)) {
    if (goes_with(load_part(PartFolder::Links, name), gpu)) names.push_back(name);
  }
  return names;
}

std::vector<NamedComposition> read_named() {
  const std::filesystem::path file = machine_directory() / "compositions" / "named.yaml";
  std::vector<NamedComposition> all;
  if (!std::filesystem::exists(file)) return all;
  const std::string text = read_text_file(file);
  Problems problems{file.string()};
  const YamlNode root = parse_yaml(text, problems);
  MapReader map{root, "the compositions", problems};
  map.required("schema_version");
  if (const YamlNode* named = map.required("machines")) {
    for (const YamlEntry& entry : named->entries) {
      MapReader one{entry.value, entry.key.text, problems};
      NamedComposition made{.name = entry.key.text, .is = {}, .summary = {}};
      if (const YamlNode* is = one.required("is")) made.is = is->text;
      if (const YamlNode* summary = one.required("summary")) made.summary = summary->text;
      one.finish();
      all.push_back(std::move(made));
    }
  }
  map.finish();
  if (problems.error_count() > 0) throw UsageError{render(problems.take(), text)};
  return all;
}

}  // namespace

const std::vector<NamedComposition>& named_compositions() {
  static const std::vector<NamedComposition> kAll = read_named();
  return kAll;
}

std::optional<Composition> parse_composition(const std::string& name) {
  const std::size_t x = name.find_first_not_of("0123456789");
  if (x == 0 || x == std::string::npos || (name[x] != 'x' && name[x] != 'X')) return {};
  Composition made;
  made.gpus = count_in(name, 0, x, kMostGpusNamed, "GPUs of a node");
  const std::size_t file = name.find(".yaml");
  const std::size_t from = file == std::string::npos ? x + 1 : file + 5;
  const std::size_t gpu_end = std::min(name.find_first_of("@/+", from), name.size());
  made.gpu = part_in(name, x + 1, gpu_end, PartFolder::Gpus);
  std::size_t at = gpu_end;
  while (at < name.size()) {
    const char mark = name[at];
    const std::size_t end = std::min(name.find_first_of("@/+", at + 1), name.size());
    if (mark == '@') {
      made.host = part_in(name, at + 1, end, PartFolder::Hosts);
    } else if (mark == '/') {
      made.link = part_in(name, at + 1, end, PartFolder::Links);
    } else {
      const std::size_t colon = std::min(name.find(':', at), end);
      made.network = part_in(name, at + 1, colon, PartFolder::Networks);
      if (colon < end) made.nodes = count_in(name, colon + 1, end, kMostNodesNamed, "nodes");
    }
    at = end;
  }
  return made;
}

Parts parts_of(const Composition& composition, const std::string& name) {
  Parts parts;
  parts.composition = composition;
  parts.gpu = load_part(PartFolder::Gpus, composition.gpu);
  const auto chosen = [&](PartFolder folder, const std::string& said, std::string_view key,
                          const char* otherwise) {
    std::string which = said.empty() ? parts.gpu.word(key) : said;
    return load_part(folder, which.empty() ? otherwise : which);
  };
  parts.link = chosen(PartFolder::Links, composition.link, "link", "pcie5");
  parts.host = chosen(PartFolder::Hosts, composition.host, "host", "intel-2s");
  parts.network = chosen(PartFolder::Networks, composition.network, "network", "ib-ndr");
  parts.network_is_named = !composition.network.empty();
  const auto column = [&](const std::string& part) {
    const std::size_t found = name.find(part);
    return part.empty() || found == std::string::npos ? 0 : found;
  };
  if (!goes_with(parts.link, parts.gpu)) {
    refuse(name, column(composition.link),
           fmt::format("a {} has no {}", parts.gpu.word("gpu"), parts.link.name),
           fmt::format("its links: {}", fmt::join(links_of(parts.gpu), ", ")));
  }
  const auto most = parts.link.value("most_gpus");
  if (most && composition.gpus > *most) {
    refuse(
        name, 0,
        fmt::format("{} joins at most {} GPUs, not {}", parts.link.name, *most, composition.gpus),
        fmt::format("{}x{}, and more nodes: +{}:NODES", *most, parts.gpu.name, parts.network.name));
  }
  return parts;
}

std::optional<Machine> composed_machine(const std::string& name) {
  const auto& named = named_compositions();
  const auto found = std::ranges::find(named, name, &NamedComposition::name);
  if (found != named.end()) {
    const auto made = parse_composition(found->is);
    Machine machine = compose(parts_of(*made, found->is), name);
    machine.summary = fmt::format("{}: {}", found->summary, machine.summary);
    return machine;
  }
  // "p5.48xlarge:16": a cloud's, and so many nodes.
  const std::size_t colon = name.rfind(':');
  const auto base = std::ranges::find(named, name.substr(0, std::min(colon, name.size())),
                                      &NamedComposition::name);
  if (colon != std::string::npos && base != named.end()) {
    auto made = *parse_composition(base->is);
    made.nodes = count_in(name, colon + 1, name.size(), kMostNodesNamed, "nodes");
    Machine machine = compose(parts_of(made, base->is), name);
    machine.summary = fmt::format("{}: {}", base->summary, machine.summary);
    return machine;
  }
  const auto made = parse_composition(name);
  if (!made) return {};
  return compose(parts_of(*made, name), name);
}

}  // namespace foretrace
