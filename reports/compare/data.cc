// The machine-readable forms; every key and column carries its unit.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/compare/accuracy.h"
#include "reports/compare/host_speed.h"
#include "reports/compare/json.h"
#include "reports/compare/output.h"
#include "reports/compare/words.h"
#include "reports/table/text_table.h"

namespace foretrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kComparisonSchemaVersion = 1;

void put(Json& object, const char* key, const std::optional<double>& value) {
  if (value) object[key] = *value;
}

Json origin_json(const Origin& origin, const std::string& name) {
  return {{"name", name},
          {"origin", origin.measured ? "measured" : "predicted"},
          {"machine", origin.machine},
          {"producer", origin.producer},
          {"versions", origin.versions}};
}

Json figure_json(const RegionFigure& figure) {
  return {{"median_ns", figure.median_ns},
          {"p5_ns", figure.p5_ns},
          {"p95_ns", figure.p95_ns},
          {"samples", figure.samples},
          {"starts", figure.starts}};
}

Json region_json(const RegionRow& row, const std::string& standing) {
  Json json{{"name", row.name}, {"op", row.op}, {"instance", row.instance}, {"line", row.line}};
  if (row.size_bytes != 0) json["size_bytes"] = row.size_bytes;
  if (row.first) json["first"] = figure_json(*row.first);
  if (row.second) json["second"] = figure_json(*row.second);
  put(json, "low_ns", row.low_ns);
  put(json, "high_ns", row.high_ns);
  put(json, "error", row.error);
  put(json, "tracing_change", row.tracing_change);
  json["standing"] = standing;
  if (row.is_fit()) json["learned_by"] = row.learned_by;
  json["verdict"] = to_string(row.judgement);
  for (const ProcessFigure& process : row.processes) {
    Json figure{{"process", process.process}};
    put(figure, "first_ns", process.first_ns);
    put(figure, "second_ns", process.second_ns);
    json["processes"].push_back(std::move(figure));
  }
  return json;
}

Json operation_json(const OperationRow& row) {
  Json json{{"op", row.op},
            {"part", row.part},
            {"kind", row.kind},
            {"label", row.label},
            {"line", row.line},
            {"size_bytes", row.size_bytes},
            {"first_pieces", row.first_pieces},
            {"second_pieces", row.second_pieces},
            {"matched", row.matched},
            {"only_first", row.only_first},
            {"only_second", row.only_second}};
  put(json, "first_ns", row.first_ns);
  put(json, "second_ns", row.second_ns);
  put(json, "error", row.error);
  put(json, "begin_offset_ns", row.begin_offset_ns);
  json["total_difference_ns"] = row.total_difference_ns;
  return json;
}

Json accuracy_json(const Accuracy& accuracy) {
  Json json{{"regions", accuracy.regions}, {"missing", accuracy.missing}};
  if (accuracy.regions == 0) return json;
  json["median_abs_error"] = accuracy.median_abs_error;
  json["p95_abs_error"] = accuracy.p95_abs_error;
  json["worst_abs_error"] = accuracy.worst_abs_error;
  json["share_within_15_percent_1500_ns_or_half_spread"] = accuracy.share_within;
  return json;
}

TextTable csv_table() {
  TextTable table;
  for (const char* column :
       {"scenario", "region", "line", "first_ns", "low_ns", "high_ns", "second_ns", "second_p5_ns",
        "second_p95_ns", "samples", "starts", "error", "tracing_change", "standing", "verdict",
        "processes", "size_bytes"}) {
    table.column(column, TextTable::Align::Left);
  }
  return table;
}

void add_csv_rows(TextTable& table, const Comparison& c) {
  const auto number = [](double value) { return fmt::format("{}", value); };
  const auto cell = [&](const std::optional<double>& v) { return v ? number(*v) : ""; };
  for (const RegionRow& row : c.regions) {
    const auto& f = row.first;
    const auto& s = row.second;
    table.row({c.first_origin.scenario, row.name, fmt::format("{}", row.line),
               f ? number(f->median_ns) : "", cell(row.low_ns), cell(row.high_ns),
               s ? number(s->median_ns) : "", s ? number(s->p5_ns) : "", s ? number(s->p95_ns) : "",
               s ? fmt::format("{}", s->samples) : "", s ? fmt::format("{}", s->starts) : "",
               cell(row.error), cell(row.tracing_change), c.standing(row), to_string(row.judgement),
               process_words(row), row.size_bytes == 0 ? "" : fmt::format("{}", row.size_bytes)});
  }
}

std::string dump_pretty(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

nlohmann::ordered_json to_json(const Comparison& c) {
  Json json{{"schema_version", kComparisonSchemaVersion},
            {"kind", "comparison"},
            {"scenario",
             {{"name", c.first_origin.scenario},
              {"file", c.first_origin.file},
              {"program_hash", c.first_origin.program_hash}}},
            {"first", origin_json(c.first_origin, c.first_name)},
            {"second", origin_json(c.second_origin, c.second_name)},
            {"standing", c.standing()},
            {"tolerance", c.tolerance},
            {"within", c.within()},
            {"regions", Json::array()},
            {"ended_alike", c.ended_alike()},
            {"operations", Json::array()},
            {"overlaps", Json::array()},
            {"memory", Json::array()}};
  if (const auto host = host_speed(c.first_origin, c.second_origin)) {
    json["host"] = {{"predicted_ns", host->predicted_ns},
                    {"measured_ns", host->measured_ns},
                    {"fastest_ns", host->fastest_ns},
                    {"slowest_ns", host->slowest_ns},
                    {"starts", host->starts},
                    {"factor", host->factor()}};
  }
  for (const RegionRow& row : c.regions)
    json["regions"].push_back(region_json(row, c.standing(row)));
  for (const OperationRow& row : c.operations) json["operations"].push_back(operation_json(row));
  for (const OverlapRow& row : c.overlaps) {
    json["overlaps"].push_back({{"a", row.a},
                                {"b", row.b},
                                {"words", overlap_words(row, c)},
                                {"first_ns", row.first_ns},
                                {"second_ns", row.second_ns},
                                {"first_share", row.first_share},
                                {"second_share", row.second_share},
                                {"differs", row.differs}});
  }
  for (const FamilyRow& row : c.families) {
    Json one{{"family", row.family},         {"first", row.first},
             {"second", row.second},         {"joined", row.joined},
             {"first_ns", row.first_ns},     {"second_ns", row.second_ns},
             {"only_first", row.only_first}, {"only_second", row.only_second}};
    put(one, "error", row.error);
    json["families"].push_back(std::move(one));
  }
  if (const auto doubts = doubts_of(c); !doubts.empty()) json["doubts"] = doubts;
  if (!c.families.empty()) {
    json["busy"] = {{"first_ns", c.first_busy_ns}, {"second_ns", c.second_busy_ns}};
  }
  for (const MemoryRow& row : c.memory) {
    Json one{{"process", row.process}, {"device", row.device}};
    if (row.first) one["first_bytes"] = *row.first;
    if (row.second) one["second_bytes"] = *row.second;
    put(one, "error", row.error);
    json["memory"].push_back(std::move(one));
  }
  return json;
}

std::string compare_json(const Comparison& comparison) { return dump_pretty(to_json(comparison)); }

std::string compare_csv(const Comparison& comparison) {
  TextTable table = csv_table();
  add_csv_rows(table, comparison);
  return table.csv();
}

std::string batch_json(std::span<const Comparison> comparisons,
                       const std::vector<std::string>& alone) {
  Json json{{"schema_version", kComparisonSchemaVersion},
            {"kind", "comparisons"},
            {"predictions", accuracy_json(accuracy_of(comparisons, Regions::Prediction))},
            {"fit", accuracy_json(accuracy_of(comparisons, Regions::Fit))},
            {"without_partner", alone},
            {"comparisons", Json::array()}};
  for (const Comparison& comparison : comparisons) {
    json["comparisons"].push_back(to_json(comparison));
  }
  return dump_pretty(json);
}

std::string batch_csv(std::span<const Comparison> comparisons) {
  TextTable table = csv_table();
  for (const Comparison& comparison : comparisons) add_csv_rows(table, comparison);
  return table.csv();
}

}  // namespace foretrace
