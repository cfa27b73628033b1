#include "sim/applications/serving/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/table/text_table.h"

namespace foretrace::serving {
namespace {

double per_gpu(const Choice& choice) {
  return choice.output_tokens_per_s / static_cast<double>(std::max<std::int64_t>(1, choice.gpus()));
}

/// Calls `visit` with each scenario, choice and number of a row, from 1.
template <class Visit>
void for_each_choice(const std::vector<Planned>& planned, const Visit& visit) {
  std::size_t number = 0;
  for (const Planned& one : planned) {
    for (const Choice& choice : one.choices) visit(one.serving, choice, ++number);
  }
}

std::string count_or_dash(const Choice& choice, std::int64_t count) {
  return choice.replicas == 0 ? "-" : fmt::format("{}", count);
}

std::string cost_text(const Asked& asked, const Choice& choice) {
  const auto cost = choice.replicas == 0 ? std::nullopt : cost_of(asked, choice, per_gpu(choice));
  return cost ? fmt::format("{:.2f}", *cost) : "";
}

}  // namespace

std::optional<double> cost_of(const Asked& asked, const Choice& choice, double tokens_per_gpu_s) {
  constexpr double kHour = 3600, kTokens = 1e6;
  auto found = asked.cost.find(choice.machine);
  if (found == asked.cost.end()) found = asked.cost.find("");
  if (found == asked.cost.end() || !(tokens_per_gpu_s > 0)) return std::nullopt;
  return found->second / kHour / tokens_per_gpu_s * kTokens;
}

std::string verdict_of(const Choice& choice) {
  if (!choice.fits) return "its weights leave no room for a cache";
  if (choice.replicas == 0) return "no number of engines holds the limits";
  return choice.holds_slow ? "holds, at the slow end of the band too"
                           : "holds, but not at the slow end of the band";
}

std::string fewest_words(const Planned& planned) {
  std::vector<std::string> machines;
  std::string text;
  for (const Choice& one : planned.choices) {
    if (one.replicas == 0 || std::ranges::count(machines, one.machine) > 0) continue;
    machines.push_back(one.machine);
    text += fmt::format("{}{}{} of {}", text.empty() ? "" : ", ", one.gpus(),
                        text.empty() ? (one.gpus() == 1 ? " GPU" : " GPUs") : "", one.machine);
  }
  return text.empty() ? "none of these machines holds the limits" : text;
}

std::map<std::string, std::vector<Best>> best_of(const std::vector<Choice>& choices) {
  constexpr double kSecond = 1000;  // milliseconds
  std::map<std::string, std::vector<Best>> by_machine;
  for (const Choice& choice : choices) {
    for (const Load& load : choice.loads) {
      if (!(load.tpot_ms > 0)) continue;
      const auto gpus = static_cast<double>(choice.tensor);
      by_machine[choice.machine].push_back({&choice, &load, kSecond / load.tpot_ms,
                                            load.output_tokens_per_s / gpus, load.low / gpus,
                                            load.high / gpus});
    }
  }
  for (auto& [machine, all] : by_machine) {
    std::ranges::stable_sort(all, std::ranges::greater{}, [](const Best& one) {
      return std::pair{one.user_tokens_per_s, one.gpu_tokens_per_s};
    });
    double most = 0;
    std::erase_if(all, [&most](const Best& one) {
      if (one.gpu_tokens_per_s <= most) return true;
      most = one.gpu_tokens_per_s;
      return false;
    });
  }
  return by_machine;
}

std::string text_of(const Asked& asked, const std::vector<Planned>& planned) {
  const bool several = planned.size() > 1;
  std::string text =
      fmt::format("{:>3}  {}{:<18}{:>7}{:>8}{:>6}{:>14}{:>14}{:>16}{:>7}{}  {}\n", "row",
                  several ? fmt::format("{:<20}", "scenario") : "", "machine", "tensor", "engines",
                  "GPUs", "TTFT p90, ms", "TPOT p90, ms", "tokens/s/GPU", "cache",
                  asked.cost.empty() ? "" : "  cost/M tokens", "limits");
  for_each_choice(planned, [&](const Serving& serving, const Choice& one, std::size_t number) {
    text +=
        fmt::format("{:>3}  {}{:<18}{:>7}", number,
                    several ? fmt::format("{:<20}", serving.name) : "", one.machine, one.tensor);
    if (!one.fits) {
      text += fmt::format("{:>65}{}  {}\n", "", asked.cost.empty() ? "" : std::string(15, ' '),
                          verdict_of(one));
      return;
    }
    text += fmt::format(
        "{:>8}{:>6}{:>14.1f}{:>14.2f}{:>16.0f}{:>6.0f}%{}  {}\n", count_or_dash(one, one.replicas),
        count_or_dash(one, one.gpus()), one.ttft_ms, one.tpot_ms,
        one.replicas == 0 ? 0 : per_gpu(one), 100 * one.cache,
        asked.cost.empty() ? "" : fmt::format("{:>15}", cost_text(asked, one)), verdict_of(one));
  });
  for (const Planned& one : planned) {
    text += fmt::format("\n{}{}\n", several ? one.serving.name + ": " : "", fewest_words(one));
    if (one.choices.empty() || one.choices.front().replicas == 0) continue;
    const Choice& best = one.choices.front();
    text += fmt::format("{} times: {}\n", best.replicas, vllm_command(one.serving, best));
  }
  return text;
}

std::string rests_notes(const std::vector<Planned>& planned) {
  std::string text;
  std::vector<std::string> told;
  for_each_choice(planned, [&](const Serving&, const Choice& one, std::size_t) {
    if (!one.fits || std::ranges::count(told, one.machine) > 0) return;
    told.push_back(one.machine);
    if (!one.rests_note.empty()) text += fmt::format("{}: {}", one.machine, one.rests_note);
  });
  return text;
}

std::string csv_of(const Asked& asked, const std::vector<Planned>& planned) {
  std::string text = fmt::format(
      "{}machine,tensor,engines,gpus,ttft_p90_ms,tpot_p90_ms,output_tokens_per_s,cache{},limits\n",
      planned.size() > 1 ? "scenario," : "", asked.cost.empty() ? "" : ",cost_per_million_tokens");
  for_each_choice(planned, [&](const Serving& serving, const Choice& one, std::size_t) {
    text += fmt::format(
        "{}{},{},{},{},{},{},{},{}{},{}\n", planned.size() > 1 ? csv_cell(serving.name) + "," : "",
        csv_cell(one.machine), one.tensor, one.replicas, one.gpus(), one.ttft_ms, one.tpot_ms,
        one.output_tokens_per_s, one.cache, asked.cost.empty() ? "" : "," + cost_text(asked, one),
        csv_cell(verdict_of(one)));
  });
  return text;
}

std::string json_of(const Asked& asked, const std::vector<Planned>& planned) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for_each_choice(planned, [&](const Serving& serving, const Choice& one, std::size_t number) {
    nlohmann::ordered_json row{{"row", number},
                               {"scenario", serving.name},
                               {"machine", one.machine},
                               {"tensor", one.tensor},
                               {"engines", one.replicas},
                               {"gpus", one.gpus()},
                               {"fits", one.fits},
                               {"holds", one.replicas > 0},
                               {"holds_slow", one.holds_slow},
                               {"ttft_p90_ms", one.ttft_ms},
                               {"tpot_p90_ms", one.tpot_ms},
                               {"output_tokens_per_s", one.output_tokens_per_s},
                               {"cache", one.cache},
                               {"assumed", one.rests.assumed}};
    if (const auto cost = cost_of(asked, one, per_gpu(one)); cost && one.replicas > 0) {
      row["cost_per_million_tokens"] = *cost;
    }
    if (one.replicas > 0) row["vllm"] = vllm_command(serving, one);
    for (const Load& load : one.loads) {
      row["loads"].push_back({{"requests", load.requests},
                              {"ttft_p50_ms", load.ttft_ms},
                              {"tpot_p50_ms", load.tpot_ms},
                              {"output_tokens_per_s", load.output_tokens_per_s},
                              {"low", load.low},
                              {"high", load.high}});
    }
    rows.push_back(std::move(row));
  });
  nlohmann::ordered_json json{{"schema_version", 1}, {"kind", "plan-serving"}, {"rows", rows}};
  if (asked.limits.ttft_ms) json["ttft_ms"] = *asked.limits.ttft_ms;
  if (asked.limits.tpot_ms) json["tpot_ms"] = *asked.limits.tpot_ms;
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace foretrace::serving
