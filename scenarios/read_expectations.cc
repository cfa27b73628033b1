#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "scenarios/quantity.h"
#include "scenarios/reader.h"

namespace foretrace {
namespace {

struct Names {
  std::set<std::string> labels;
  std::set<std::string> regions;
};

void collect_names(const Block& block, Names& names) {
  for (const Op& op : block) {
    if (!op.label.empty()) names.labels.insert(op.label);
    if (const auto* region = std::get_if<Region>(&op.kind)) names.regions.insert(region->name);
    if (const Block* inner = block_of(op.kind)) collect_names(*inner, names);
  }
}

class ExpectationReader {
 public:
  ExpectationReader(Reader& reader, Names names) : reader_{reader}, names_{std::move(names)} {}

  void read(const YamlEntry& entry) {
    MapReader map{entry.value, entry.key.text, reader_.problems};
    Expectation result;
    result.kind = entry.key.text;
    result.line = entry.key.line;
    result.column = entry.key.column;
    if (result.kind == "overlap") {
      read_list(map, "spans", names_.labels, "id", result);
      result.fraction = fraction(map.required("at_least"));
    } else if (result.kind == "host_free") {
      read_one(map, "after", names_.labels, "id", result);
      result.at_most = duration(map.required("within"));
    } else if (result.kind == "order") {
      read_one(map, "first", names_.labels, "id", result);
      read_one(map, "then", names_.labels, "id", result);
    } else if (result.kind == "total") {
      read_one(map, "region", names_.regions, "region", result);
      result.at_least = duration(map.optional("at_least"));
      result.at_most = duration(map.optional("at_most"));
      require_bound(map);
    } else if (result.kind == "ratio") {
      read_list(map, "regions", names_.regions, "region", result);
      result.fraction = fraction(map.optional("at_least"));
      result.fraction_at_most = fraction(map.optional("at_most"));
      require_bound(map);
    } else {
      reader_.problems.error(
          entry.key, fmt::format("unknown expectation '{}'", result.kind),
          suggest(result.kind, {"overlap", "host_free", "order", "total", "ratio"}));
      return;
    }
    map.finish();
    reader_.program.expectations.push_back(std::move(result));
  }

 private:
  void require_bound(MapReader& map) {
    if (map.has("at_least") || map.has("at_most")) return;
    reader_.problems.error(map.node(), "'at_least' or 'at_most' is needed");
  }

  void add_name(const YamlNode& node, const std::set<std::string>& known, std::string_view what,
                Expectation& result) {
    const std::string name = read_word(reader_, node, what);
    if (!name.empty() && !known.contains(name)) {
      report_unknown_word(reader_, node, what, name, {known.begin(), known.end()});
    }
    result.spans.push_back(name);
  }

  void read_one(MapReader& map, std::string_view key, const std::set<std::string>& known,
                std::string_view what, Expectation& result) {
    if (const YamlNode* node = map.required(key)) add_name(*node, known, what, result);
  }

  void read_list(MapReader& map, std::string_view key, const std::set<std::string>& known,
                 std::string_view what, Expectation& result) {
    const YamlNode* node = map.required(key);
    if (node == nullptr) return;
    if (node->kind != YamlNode::Kind::Sequence || node->items.size() != 2) {
      reader_.problems.error(*node, fmt::format("'{}' is a list of two names: [a, b]", key));
      return;
    }
    for (const YamlNode& item : node->items) add_name(item, known, what, result);
  }

  std::optional<double> fraction(const YamlNode* node) {
    if (node == nullptr) return std::nullopt;
    const auto quantity = read_quantity(reader_, *node);
    if (!quantity) return std::nullopt;
    const auto value = to_double(*quantity);
    if (quantity->unit != kNumber || !value || *value < 0) {
      reader_.problems.error(*node, "a share such as 80% or 1.5 is needed here");
      return std::nullopt;
    }
    return value;
  }

  std::optional<Duration> duration(const YamlNode* node) {
    if (node == nullptr) return std::nullopt;
    return Duration{read_constant(reader_, *node, kTime, 0, kNoLimit)};
  }

  Reader& reader_;
  Names names_;
};

}  // namespace

void read_expectations(Reader& reader, const YamlNode* node) {
  if (node == nullptr) return;
  if (node->kind != YamlNode::Kind::Sequence) {
    reader.problems.error(*node, "expectations are a list: '- name: {...}' in each line");
    return;
  }
  Names names;
  for (const HostThread& thread : reader.program.threads) collect_names(thread.ops, names);
  ExpectationReader expectations{reader, std::move(names)};
  for (const YamlNode& item : node->items) {
    if (item.kind == YamlNode::Kind::Map && item.entries.size() == 1) {
      expectations.read(item.entries.front());
    } else {
      reader.problems.error(item, "an expectation is one name with its keys: 'name: {...}'");
    }
  }
}

}  // namespace foretrace
