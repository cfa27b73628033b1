#include "scenarios/serving/served_facts_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/base/values/json_whole.h"

namespace foretrace {
namespace {

constexpr const char* kColumns[] = {"process", "at_ns", "running", "waiting"};

bool is_share(double share) { return std::isfinite(share) && share >= 0 && share <= 1; }

}  // namespace

nlohmann::ordered_json to_json(const ServingFacts& facts) {
  nlohmann::ordered_json json{{"engine", facts.engine},
                              {"engines", facts.engines},
                              {"gpus", facts.gpus},
                              {"requests", facts.requests},
                              {"output_tokens", facts.output_tokens},
                              {"iterations", facts.iterations},
                              {"preemptions", facts.preemptions},
                              {"waiting_share", facts.waiting_share},
                              {"occupancy_columns", kColumns}};
  auto& occupancy = json["occupancy"] = nlohmann::ordered_json::array();
  for (const auto& one : facts.occupancy) {
    occupancy.push_back({one.process, one.at_ns, one.running, one.waiting});
  }
  for (const auto& one : facts.limits) {
    json["limits"].push_back({{"what", one.what}, {"share", one.share}});
  }
  for (const auto& one : facts.what_if) {
    json["what_if"].push_back({{"change", one.change},
                               {"ttft_p50_ns", one.ttft_p50_ns},
                               {"ttft_p90_ns", one.ttft_p90_ns},
                               {"tpot_p50_ns", one.tpot_p50_ns},
                               {"tokens_per_s", one.tokens_per_s}});
  }
  return json;
}

ServingFacts serving_facts(const nlohmann::json& json) {
  ServingFacts facts;
  json.at("engine").get_to(facts.engine);
  facts.engines = json_whole<std::int64_t>(json.at("engines"));
  facts.gpus = json_whole<std::int64_t>(json.at("gpus"));
  facts.requests = json_whole<std::int64_t>(json.at("requests"));
  facts.output_tokens = json_whole<std::int64_t>(json.at("output_tokens"));
  facts.iterations = json_whole<std::int64_t>(json.at("iterations"));
  facts.preemptions = json_whole<std::int64_t>(json.at("preemptions"));
  json.at("waiting_share").get_to(facts.waiting_share);
  if (json.at("occupancy_columns") != nlohmann::json(kColumns)) {
    throw nlohmann::json::other_error::create(
        501, "'occupancy_columns' are not process, at_ns, running, waiting", &json);
  }
  for (const auto& row : json.at("occupancy")) {
    facts.occupancy.push_back(
        {json_whole<std::uint32_t>(row.at(0)), json_whole<std::int64_t>(row.at(1)),
         json_whole<std::int64_t>(row.at(2)), json_whole<std::int64_t>(row.at(3))});
  }
  if (json.contains("limits")) {
    for (const auto& row : json.at("limits")) {
      facts.limits.push_back({row.at("what").get<std::string>(), row.at("share").get<double>()});
    }
  }
  if (!json.contains("what_if")) return facts;
  for (const auto& row : json.at("what_if")) {
    facts.what_if.push_back(
        {row.at("change").get<std::string>(), json_whole<std::int64_t>(row.at("ttft_p50_ns")),
         json_whole<std::int64_t>(row.at("ttft_p90_ns")),
         json_whole<std::int64_t>(row.at("tpot_p50_ns")), row.at("tokens_per_s").get<double>()});
  }
  return facts;
}

std::optional<std::string> what_is_wrong(const ServingFacts& facts) {
  const std::int64_t counts[] = {facts.engines,    facts.gpus,        facts.requests,
                                 facts.iterations, facts.preemptions, facts.output_tokens};
  if (std::ranges::any_of(counts, [](std::int64_t n) { return n < 0; })) {
    return "'serving' has a count below 0";
  }
  const bool shares = std::ranges::all_of(facts.limits, is_share, &ServingFacts::Share::share);
  if (!shares || !is_share(facts.waiting_share)) return "'serving' has a share that is none";
  for (const auto& one : facts.what_if) {
    if (!std::isfinite(one.tokens_per_s)) return "'serving' has a rate that is no number";
  }
  const auto is_sound = [](const ServingFacts::Occupancy& one) {
    return one.at_ns >= 0 && one.running >= 0 && one.waiting >= 0;
  };
  if (!std::ranges::all_of(facts.occupancy, is_sound)) {
    return "'serving' has an occupancy below 0";
  }
  return std::nullopt;
}

}  // namespace foretrace
