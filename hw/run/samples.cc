#include "hw/run/samples.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <type_traits>

namespace foretrace::hw {
namespace {

using Json = nlohmann::json;

/// Finds the row of a region, instance and process, or adds it.
class RowIndex {
 public:
  explicit RowIndex(std::vector<RegionSamples>& rows) : rows_{rows} {
    for (std::size_t i = 0; i < rows.size(); ++i) index_[key_of(rows[i])] = i;
  }
  RegionSamples& row_of(const RegionSamples& like) {
    const auto [known, is_new] = index_.try_emplace(key_of(like), rows_.size());
    if (is_new) {
      rows_.push_back(like);
      rows_.back().samples_ns.clear();
      rows_.back().starts.clear();
      rows_.back().traced_ns.reset();
    }
    return rows_[known->second];
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>;
  static Key key_of(const RegionSamples& row) { return {row.op, row.instance, row.process}; }

  std::vector<RegionSamples>& rows_;
  std::map<Key, std::size_t> index_;
};

RegionSamples empty_row(const std::vector<OpInfo>& infos, Execution execution,
                        std::uint32_t process) {
  const Op& op = *infos.at(execution.op).op;
  RegionSamples row;
  row.op = execution.op;
  row.instance = execution.instance;
  row.process = process;
  row.name = op.label;
  if (const auto* region = std::get_if<Region>(&op.kind)) {
    row.name = region->name;
    row.per = region->per;
  }
  return row;
}

Json to_json(const RegionSamples& row) {
  Json json = {{"op", row.op},        {"instance", row.instance}, {"process", row.process},
               {"name", row.name},    {"per", row.per},           {"samples_ns", row.samples_ns},
               {"starts", row.starts}};
  if (row.traced_ns) json["traced_ns"] = *row.traced_ns;
  return json;
}

RegionSamples region_from(const Json& json) {
  RegionSamples row;
  row.op = json.at("op");
  row.instance = json.at("instance");
  row.process = json.at("process");
  row.name = json.at("name");
  row.per = json.at("per");
  row.samples_ns = json.at("samples_ns").get<std::vector<std::int64_t>>();
  row.starts = json.at("starts").get<std::vector<std::uint32_t>>();
  if (json.contains("traced_ns")) row.traced_ns = json.at("traced_ns").get<std::int64_t>();
  return row;
}

}  // namespace

void add_repetition(std::vector<RegionSamples>& rows, const Program& program,
                    const std::vector<RegionTime>& times, std::uint32_t process,
                    std::uint32_t start) {
  const auto infos = index_ops(program);
  RowIndex index{rows};
  for (const RegionTime& time : times) {
    RegionSamples& row = index.row_of(empty_row(infos, time.execution, process));
    row.samples_ns.push_back(time.ns);
    row.starts.push_back(start);
  }
}

void set_traced(std::vector<RegionSamples>& rows, const Program& program,
                const std::vector<RegionTime>& times, std::uint32_t process) {
  const auto infos = index_ops(program);
  RowIndex index{rows};
  for (const RegionTime& time : times) {
    index.row_of(empty_row(infos, time.execution, process)).traced_ns = time.ns;
  }
}

void append_samples(std::vector<RegionSamples>& rows, const std::vector<RegionSamples>& more) {
  RowIndex index{rows};
  for (const RegionSamples& other : more) {
    RegionSamples& row = index.row_of(other);
    row.samples_ns.insert(row.samples_ns.end(), other.samples_ns.begin(), other.samples_ns.end());
    row.starts.insert(row.starts.end(), other.starts.begin(), other.starts.end());
    if (other.traced_ns) row.traced_ns = other.traced_ns;
  }
}

std::size_t repetitions_in(const std::vector<RegionSamples>& rows) {
  if (rows.empty()) return 0;
  const auto size_of_row = [](const RegionSamples& row) { return row.samples_ns.size(); };
  return size_of_row(*std::ranges::min_element(rows, {}, size_of_row));
}

std::uint32_t next_start(const std::vector<RegionSamples>& rows) {
  std::uint32_t next = 0;
  for (const RegionSamples& row : rows) {
    for (const std::uint32_t start : row.starts) next = std::max(next, start + 1);
  }
  return next;
}

std::string to_bytes(const Timeline& part) {
  static_assert(std::is_trivially_copyable_v<Span>);
  Json head = {{"lanes", Json::array()}, {"details", Json::array()}, {"regions", Json::array()}};
  for (const Lane& lane : part.lanes) {
    head["lanes"].push_back(
        {static_cast<int>(lane.kind), lane.node, lane.process, lane.device, lane.name});
  }
  for (const SpanDetail& detail : part.details) {
    head["details"].push_back({detail.kernel, detail.algorithm, detail.channels});
  }
  for (const RegionSamples& row : part.regions) head["regions"].push_back(to_json(row));
  std::string encoded;
  Json::to_cbor(head, encoded);
  const std::uint64_t head_bytes = encoded.size();
  std::string bytes(sizeof head_bytes, '\0');
  std::memcpy(bytes.data(), &head_bytes, sizeof head_bytes);
  bytes += encoded;
  // Spans by the million: as they are in memory, both ends are the same program.
  bytes.append(reinterpret_cast<const char*>(part.spans.data()), part.spans.size() * sizeof(Span));
  return bytes;
}

Timeline from_bytes(const std::string& bytes) {
  std::uint64_t head_bytes = 0;
  std::memcpy(&head_bytes, bytes.data(), sizeof head_bytes);
  const auto head_begin = bytes.begin() + sizeof head_bytes;
  const auto head_end = head_begin + static_cast<std::ptrdiff_t>(head_bytes);
  const Json head = Json::from_cbor(head_begin, head_end);
  Timeline part;
  part.details.clear();
  for (const Json& lane : head.at("lanes")) {
    part.lanes.push_back({static_cast<LaneKind>(lane.at(0).get<int>()), lane.at(1), lane.at(2),
                          lane.at(3), lane.at(4)});
  }
  for (const Json& sent : head.at("details")) {
    SpanDetail& detail = part.details.emplace_back();
    detail.kernel = sent.at(0);
    detail.algorithm = sent.at(1);
    detail.channels = sent.at(2);
  }
  for (const Json& row : head.at("regions")) part.regions.push_back(region_from(row));
  const std::size_t span_bytes = static_cast<std::size_t>(bytes.end() - head_end);
  part.spans.resize(span_bytes / sizeof(Span));
  if (span_bytes > 0) {  // memcpy must not see a null pointer, not even for nothing
    std::memcpy(part.spans.data(), bytes.data() + sizeof head_bytes + head_bytes, span_bytes);
  }
  return part;
}

}  // namespace foretrace::hw
