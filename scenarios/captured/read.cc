#include "scenarios/captured/read.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "scenarios/base/text/errors.h"

namespace foretrace::captured {
namespace {

Record record_of(Reader& reader, const YamlNode& node) {
  const auto beside = std::filesystem::path{reader.problems.file()}.parent_path();
  try {
    return read_record(beside / node.text);
  } catch (const UsageError& error) {
    reader.problems.error(node, error.what());
    return {};
  }
}

RankRecord read_one(Reader& reader, const YamlNode& node, std::int64_t world) {
  RankRecord one;
  MapReader map{node, "a record", reader.problems};
  if (const YamlNode* file = map.required("file")) one.record = record_of(reader, *file);
  if (const YamlNode* rank = map.optional("rank")) {
    const auto said = read_constant(reader, *rank, kNumber, 0, world - 1);
    if (said != one.record.rank) {
      reader.problems.error(*rank, fmt::format("the record is of rank {}", one.record.rank));
    }
  }
  if (const YamlNode* ranks = map.required("stands_for")) {
    for (const YamlNode& rank : ranks->items) {
      one.stands_for.push_back(read_constant(reader, rank, kNumber, 0, world - 1));
    }
    std::ranges::sort(one.stands_for);
  }
  map.finish();
  return one;
}

void check_ranks(Reader& reader, const YamlNode& node, const CapturedStep& step) {
  std::vector<std::int64_t> all;
  for (const RankRecord& one : step.ranks) {
    all.insert(all.end(), one.stands_for.begin(), one.stands_for.end());
    if (one.record.world != step.world) {
      reader.problems.error(node,
                            fmt::format("the record is of {} ranks, the scenario of {} processes",
                                        one.record.world, step.world),
                            fmt::format("capture again with --world-size {}", step.world));
    }
  }
  std::ranges::sort(all);
  std::vector<std::int64_t> wanted(static_cast<std::size_t>(step.world));
  std::iota(wanted.begin(), wanted.end(), 0);
  if (all != wanted) reader.problems.error(node, "every rank needs one record that stands for it");
}

}  // namespace

CapturedStep read_captured_step(Reader& reader, const YamlNode& node) {
  CapturedStep step;
  step.world = reader.program.processes;
  MapReader map{node, "a captured step", reader.problems};
  const YamlNode* calls = map.required("calls");
  if (calls != nullptr && calls->kind == YamlNode::Kind::Sequence) {
    for (const YamlNode& one : calls->items)
      step.ranks.push_back(read_one(reader, one, step.world));
  } else if (calls != nullptr) {
    RankRecord one;
    one.record = record_of(reader, *calls);
    one.stands_for.resize(static_cast<std::size_t>(step.world));
    std::iota(one.stands_for.begin(), one.stands_for.end(), 0);
    step.ranks.push_back(std::move(one));
  }
  map.finish();
  if (reader.problems.error_count() == 0 && calls != nullptr) check_ranks(reader, *calls, step);
  return step;
}

}  // namespace foretrace::captured
