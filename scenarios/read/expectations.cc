#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "scenarios/program/program_walk.h"
#include "scenarios/read/reader.h"
#include "scenarios/base/values/quantity.h"

namespace foretrace {
namespace {

struct Names {
  std::set<std::string> labels;
  std::set<std::string> regions;
};

Names names_in(const Program& program) {
  Names names;
  for_each_op(program, [&](const HostThread&, const Op& op, Around) {
    if (!op.label.empty()) names.labels.insert(op.label);
    if (const auto* region = std::get_if<Region>(&op.kind)) names.regions.insert(region->name);
    if (is_timed(op)) names.regions.insert(op.label);
  });
  return names;
}

class ExpectationReader {
 public:
  ExpectationReader(Reader& reader, Names names) : reader_{reader}, names_{std::move(names)} {}

  void read(const YamlEntry& entry) {
    const auto kind = std::ranges::find(kKinds, entry.key.text, &Kind::name);
    if (kind == kKinds.end()) {
      std::vector<std::string> names;
      for (const Kind& known : kKinds) names.emplace_back(known.name);
      reader_.problems.error(entry.key, fmt::format("unknown expectation '{}'", entry.key.text),
                             suggest(entry.key.text, names));
      return;
    }
    MapReader map{entry.value, entry.key.text, reader_.problems};
    Expectation result;
    result.kind = entry.key.text;
    std::tie(result.line, result.column) = entry.key.place();
    (this->*kind->read)(map, result);
    read_machines(map, "only_on", result.on);
    read_machines(map, "not_on", result.not_on);
    map.finish();
    reader_.program.expectations.push_back(std::move(result));
  }

 private:
  struct Kind {
    std::string_view name;
    void (ExpectationReader::*read)(MapReader&, Expectation&);
  };
  static const std::array<Kind, 13> kKinds;

  void read_overlap(MapReader& map, Expectation& result) {
    read_list(map, "spans", names_.labels, "id", result);
    result.fraction = fraction(map.required("at_least"));
  }
  void read_order(MapReader& map, Expectation& result) {
    read_label(map, "first", result);
    read_label(map, "then", result);
  }
  void read_return(MapReader& map, Expectation& result) {
    read_label(map, "call", result);
    read_label(map, "end_of", result);
  }
  void read_begins_within(MapReader& map, Expectation& result) {
    read_label(map, "after", result);
    read_label(map, "then", result);
    result.at_most = duration(map.required("within"));
  }
  void read_host_free(MapReader& map, Expectation& result) {
    read_label(map, "after", result);
    result.at_most = duration(map.required("within"));
  }
  void read_host_blocked(MapReader& map, Expectation& result) {
    read_label(map, "in", result);
    result.at_least = duration(map.required("at_least"));
  }
  void read_lasts(MapReader& map, Expectation& result) {
    read_label(map, "span", result);
    read_durations(map, result);
  }
  void read_total(MapReader& map, Expectation& result) {
    read_one(map, "region", names_.regions, "region", result);
    read_durations(map, result);
  }
  void read_ratio(MapReader& map, Expectation& result) {
    read_list(map, "regions", names_.regions, "region", result);
    result.fraction = fraction(map.optional("at_least"));
    result.fraction_at_most = fraction(map.optional("at_most"));
    require_bound(map);
  }
  void read_channels(MapReader& map, Expectation& result) {
    read_label(map, "span", result);
    result.fraction = fraction(map.optional("at_least"));
    result.fraction_at_most = fraction(map.optional("at_most"));
    require_bound(map);
  }
  void read_outcome(MapReader& map, Expectation& result) { read_label(map, "at", result); }

  void read_machines(MapReader& map, std::string_view key, std::vector<std::string>& names) {
    const YamlNode* node = map.optional(key);
    if (node == nullptr) return;
    if (node->kind != YamlNode::Kind::Sequence || node->items.empty()) {
      reader_.problems.error(*node, fmt::format("'{}' is a list of machine models: [a, b]", key));
      return;
    }
    for (const YamlNode& item : node->items) {
      names.push_back(read_word(reader_, item, "a machine model's name"));
    }
  }

  void read_label(MapReader& map, std::string_view key, Expectation& result) {
    read_one(map, key, names_.labels, "id", result);
  }

  void read_durations(MapReader& map, Expectation& result) {
    result.at_least = duration(map.optional("at_least"));
    result.at_most = duration(map.optional("at_most"));
    require_bound(map);
  }

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
    constexpr std::string_view kShare = "a share such as 80% or 1.5";
    if (node == nullptr) return std::nullopt;
    const auto quantity = read_quantity(reader_, *node, kShare);
    if (!quantity) return std::nullopt;
    const auto value = to_double(*quantity);
    if (quantity->unit != kNumber || !value || *value < 0) {
      reader_.problems.error(*node, fmt::format("{} is needed here", kShare));
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

constexpr std::array<ExpectationReader::Kind, 13> ExpectationReader::kKinds{{
    {"overlap", &ExpectationReader::read_overlap},
    {"order", &ExpectationReader::read_order},
    {"returns_before", &ExpectationReader::read_return},
    {"returns_after", &ExpectationReader::read_return},
    {"begins_within", &ExpectationReader::read_begins_within},
    {"host_free", &ExpectationReader::read_host_free},
    {"host_blocked", &ExpectationReader::read_host_blocked},
    {"lasts", &ExpectationReader::read_lasts},
    {"total", &ExpectationReader::read_total},
    {"ratio", &ExpectationReader::read_ratio},
    {"channels", &ExpectationReader::read_channels},
    {"fails", &ExpectationReader::read_outcome},
    {"hangs", &ExpectationReader::read_outcome},
}};

}  // namespace

void read_expectations(Reader& reader, const YamlNode* node) {
  if (node == nullptr) return;
  if (node->kind != YamlNode::Kind::Sequence) {
    reader.problems.error(*node, "expectations are a list: '- name: {...}' in each line");
    return;
  }
  Names names = names_in(reader.program);
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
