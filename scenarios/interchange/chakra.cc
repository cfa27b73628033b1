// Chakra's traces as a scenario: communicators, streams and buffers around what each rank does.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "scenarios/base/text/errors.h"
#include "scenarios/interchange/chakra_nodes.h"
#include "scenarios/interchange/chakra_rank.h"
#include "scenarios/interchange/interchange.h"

namespace foretrace::interchange {
namespace {

using Ranks = std::vector<std::uint64_t>;

/// The JSON of PyTorch's list of process groups, with whatever brackets a converter left around it.
std::map<std::string, Ranks> groups_of(const ChakraTrace& trace, std::uint64_t processes) {
  std::string text;
  if (const auto own = trace.texts.find(kGroups); own != trace.texts.end()) text = own->second;
  for (const ChakraNode& node : trace.nodes) {
    if (text.empty()) text = node.inputs;
  }
  std::map<std::string, Ranks> groups;
  const auto begin = text.find("[{"), end = text.rfind("}]");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return groups;
  const auto list = nlohmann::json::parse(text.substr(begin, end + 2 - begin), nullptr, false);
  if (list.is_discarded() || !list.is_array()) return groups;
  for (const auto& group : list) {
    if (!group.is_object() || !group.contains("pg_name") || !group["pg_name"].is_string()) continue;
    Ranks ranks;
    bool is_list = group.contains("ranks") && group["ranks"].is_array();
    for (const auto& rank : is_list ? group["ranks"] : nlohmann::json::array()) {
      is_list = is_list && rank.is_number_unsigned() && rank.get<std::uint64_t>() < processes;
      if (is_list) ranks.push_back(rank.get<std::uint64_t>());
    }
    if (is_list && ranks.empty()) {  // PyTorch's way to say all
      ranks.resize(processes);
      std::iota(ranks.begin(), ranks.end(), 0);
    }
    if (is_list) groups[group["pg_name"].get<std::string>()] = std::move(ranks);
  }
  return groups;
}

std::vector<std::string> notes_of(const ChakraFacts& facts,
                                  const std::map<std::string, std::size_t>& unread) {
  std::vector<std::string> notes;
  const auto count = [&](const char* what) {
    const auto found = facts.counts.find(what);
    return found == facts.counts.end() ? std::size_t{0} : found->second;
  };
  notes.push_back(fmt::format("read: {} kernels, {} collectives, {} sends and receives, {} copies",
                              count("kernels"), count("collectives"), count("transfers"),
                              count("copies")));
  notes.emplace_back(
      "assumed: kernels take 100 of an H100's 132 SMs, loads and stores are copies from and to the "
      "host; where the trace names no streams, kernels, communication and copies have one each");
  notes.emplace_back("assumed: comm_size is what a rank puts in, in bytes");
  const auto note = [&](const char* what, const char* text) {
    if (count(what) > 0) notes.push_back(fmt::format("{} {}", count(what), text));
  };
  note("priced", "kernels without a duration: by num_ops, tensor_size and the machine's peaks");
  note("without time", "kernels without duration, num_ops and tensor_size: left out");
  note("missing", "dependencies on nodes that are not in the file: left out");
  note("circles", "traces whose control dependencies form a circle: data dependencies alone hold");
  note("cpu", "operators of the CPU: left out, what they order stays ordered");
  note("without work", "nodes of metadata: left out, what they order stays ordered");
  note("alone", "collectives of one process: left out; --processes N gives them others");
  note("host", "calls and work of the host between them: kept");
  if (!facts.unknown_groups.empty()) {
    notes.push_back(fmt::format("assumed: {} process groups (pg_name) without a list are all ranks",
                                facts.unknown_groups.size()));
  }
  for (const auto& [name, times] : unread) {
    notes.push_back(fmt::format("not read: attribute '{}', {} times", name, times));
    if (notes.size() > 40) break;
  }
  return notes;
}

/// "{g1: {members: [[0, 0], [1, 0]], init: rank}}", of those that operations name.
std::string communicators(const std::map<Ranks, std::string>& comms, const ChakraFacts& facts) {
  std::string text;
  if (facts.comms.contains("world")) text += "  world: {members: all_devices, init: rank}\n";
  for (const auto& [ranks, name] : comms) {
    if (!facts.comms.contains(name)) continue;
    std::vector<std::string> members;
    for (const std::uint64_t rank : ranks) members.push_back(fmt::format("[{}, 0]", rank));
    text += fmt::format("  {}: {{members: [{}], init: rank}}\n", name, fmt::join(members, ", "));
  }
  return text.empty() ? text : "communicators:\n" + text;
}

std::string objects(const ChakraFacts& facts) {
  std::string text;
  for (const std::string& stream : facts.streams) {
    text += fmt::format("{}{}: {{flags: non_blocking}}", text.empty() ? "" : ", ", stream);
  }
  if (!text.empty()) text = "streams: {" + text + "}\n";
  if (facts.events > 0) {
    text += fmt::format("events: {{done: {{count: {}, timing: false}}}}\n", facts.events);
  }
  const auto copies = facts.counts.find("copies");
  return text + fmt::format(
                    "buffers:\n  a: {{memory: device, size: {0}B}}\n  b: {{memory: device, size: "
                    "{0}B}}\n  host: {{memory: pinned, size: {1}B}}\n",
                    facts.largest,
                    copies != facts.counts.end() && copies->second > 0 ? facts.largest : 16);
}

/// Of "traces/rank.12.et", as Chakra's tools name them; empty of other names.
std::optional<std::uint32_t> rank_by_name(std::string_view name) {
  if (!name.ends_with(".et")) return {};
  name.remove_suffix(3);
  const std::size_t point = name.rfind('.');
  if (point == std::string_view::npos) return {};
  std::uint32_t rank = 0;
  const char* const last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data() + point + 1, last, rank);
  return error == std::errc{} && end == last ? std::optional{rank} : std::nullopt;
}

/// By the ranks in their names, where all have one: a shell puts rank.10.et before rank.2.et.
std::vector<const RankFile*> in_order(const std::vector<RankFile>& files) {
  std::vector<const RankFile*> found;
  for (const RankFile& file : files) found.push_back(&file);
  const auto has_rank = [](const RankFile& file) { return rank_by_name(file.name).has_value(); };
  if (files.size() == 1 || !std::ranges::all_of(files, has_rank)) return found;
  const auto rank = [](const RankFile* file) { return *rank_by_name(file->name); };
  std::ranges::stable_sort(found, {}, rank);
  for (std::uint32_t i = 0; i < found.size(); ++i) {
    if (i > 0 && rank(found[i]) == rank(found[i - 1])) {
      throw UsageError{fmt::format("{} and {} are both of rank {}\n  hint: one trace of each rank",
                                   found[i - 1]->name, found[i]->name, rank(found[i]))};
    }
    if (rank(found[i]) != i) {
      throw UsageError{
          fmt::format("{}: {} traces, and none is of rank {}\n  hint: one trace of each rank, or "
                      "one of all of them with --processes",
                      found[i]->name, files.size(), i)};
    }
  }
  return found;
}

}  // namespace

bool is_chakra(std::string_view file) { return file.ends_with(".et"); }

Scenario read_chakra(const std::vector<RankFile>& files, const Options& options) {
  const std::vector<const RankFile*> ranks = in_order(files);
  ChakraFacts facts;
  facts.processes = options.processes > 0 ? options.processes : ranks.size();
  if (ranks.size() > 1 && facts.processes != ranks.size()) {
    throw UsageError{
        fmt::format("--processes {}: there are traces of {} ranks\n  hint: one trace for "
                    "all processes, or no --processes",
                    facts.processes, ranks.size())};
  }
  std::map<std::string, std::size_t> unread;
  std::map<Ranks, std::string> comms;
  std::string threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const ChakraTrace trace = read_chakra_nodes(ranks[rank]->name, ranks[rank]->bytes);
    for (const auto& [name, times] : trace.unread) unread[name] += times;
    std::map<std::string, ChakraGroup> groups;
    // One trace for all processes: the others' groups are not in it.
    if (ranks.size() == facts.processes) {
      for (auto& [name, of] : groups_of(trace, facts.processes)) {
        const std::string& comm =
            comms.try_emplace(of, fmt::format("group_{}", comms.size() + 1)).first->second;
        groups.emplace(name, ChakraGroup{comm, std::move(of)});
      }
    }
    const std::string ops = rank_ops(ranks[rank]->name, trace, options, groups, facts);
    threads += fmt::format("  rank{}:\n", rank);
    if (ranks.size() > 1) threads += fmt::format("    process: {}\n    ops:\n", rank);
    threads += "    - host_barrier: {}\n    - region:\n        name: trace\n        ops:\n" + ops;
  }
  Scenario scenario;
  scenario.text = fmt::format(
      "# A Chakra execution trace: foretrace import.\nschema_version: 1\nname: {}\nprocesses: "
      "{}\n{}{}threads:\n{}",
      options.name, facts.processes, objects(facts), communicators(comms, facts), threads);
  scenario.notes = notes_of(facts, unread);
  if (ranks.size() > 1 && !rank_by_name(ranks.front()->name)) {
    scenario.notes.emplace_back("assumed: the files are those of ranks 0, 1, 2 ... in their order");
  }
  return scenario;
}

}  // namespace foretrace::interchange
