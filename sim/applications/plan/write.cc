#include "sim/applications/plan/write.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "reports/table/text_table.h"
#include "scenarios/base/text/made_from.h"
#include "sim/applications/training/usage.h"

namespace foretrace::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLeastGain = 0.005;  // what is printed of gains

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }
std::string seconds_text(double seconds) { return format_time(seconds * 1e9); }

const Remedy* best_remedy(const Row& row) {
  return row.remedies.empty() ? nullptr : &row.remedies.front();
}

/// Each value of a row once, for CSV and JSON.
Json values_of(const Question& question, const Answer& answer, const Row& row, std::size_t number) {
  const Layout& layout = row.layout;
  const Prediction& p = row.prediction;
  Json values{{"row", number},
              {"model", question.model_name},
              {"machine", answer.machine},
              {"gpus", layout.gpus}};
  for (const auto& [name, value] : choices_of(layout)) values[name] = value;
  for (const char* name : {"tensor", "context", "pipeline", "virtual", "expert", "micro"}) {
    values[name] = std::stoll(values[name].get<std::string>());
  }
  values["data"] = layout.data;
  values["passes"] = layout.passes;
  values["reduce_every_pass"] = layout.reduce_every_pass;
  values["step_s"] = p.seconds;
  values["low_s"] = p.seconds * p.low;
  values["high_s"] = p.seconds * p.high;
  values["lower_bound_s"] = row.bound;
  values["folded_step_s"] = row.settled.seconds;
  values["simulated_passes"] = p.simulated_passes;
  values["tokens_per_s_per_gpu"] = row.tokens_per_gpu_second;
  values["mfu"] = row.mfu;
  values["memory_gb"] = row.fit.bytes * 1e-9;
  values["memory_is_tight"] = row.fit.is_tight;
  values["computing"] = p.computing;
  values["exposed"] = p.exposed;
  values["bubble"] = p.bubble;
  values["host_bound"] = p.idle;
  const Remedy* const remedy = best_remedy(row);
  values["limited_by"] = remedy != nullptr ? remedy->limits : "";
  values["remedy"] = remedy != nullptr ? remedy->what : "";
  values["remedy_gain"] = remedy != nullptr ? remedy->gain : 0;
  const bool waits = !row.causes.empty();
  values["waits_for"] = waits ? std::string{name_of(row.causes.front().cause)} : "";
  values["waits_for_gain"] = waits ? row.causes.front().gain : 0;
  values["gpu_hours_per_1e12_tokens"] = row.gpu_hours;
  if (row.cost) values["cost_per_1e12_tokens"] = *row.cost;
  values["assumed"] = p.rests_on.assumed;
  values["priced"] = p.rests_on.priced;
  return values;
}

}  // namespace

std::vector<Column> columns_of(const Question& question) {
  std::vector<Column> columns{{"row"},
                              {"GPUs"},
                              {"machine", false},
                              {"layout", false},
                              {"step"},
                              {"band"},
                              {"tokens/s/GPU"},
                              {"MFU"},
                              {"memory"},
                              {"exposed"},
                              {"bubble"},
                              {"host-bound"},
                              {"limited by", false},
                              {"GPU-hours"}};
  if (question.cost_per_gpu_hour) columns.push_back({"cost"});
  return columns;
}

std::vector<std::string> cells_of(const Question& question, const Answer& answer, const Row& row,
                                  std::size_t number) {
  const Prediction& p = row.prediction;
  const Remedy* const remedy = best_remedy(row);
  std::vector<std::string> cells{
      std::to_string(number),
      format_count(static_cast<std::uint64_t>(row.layout.gpus)),
      answer.machine,
      describe(row.layout),
      seconds_text(p.seconds),
      seconds_text(p.seconds * p.low) + " .. " + seconds_text(p.seconds * p.high),
      fmt::format("{:.0f}", row.tokens_per_gpu_second),
      fmt::format("{:.1f} %", 100 * row.mfu),
      fmt::format("{:.1f} GB{}", row.fit.bytes * 1e-9, row.fit.is_tight ? " (tight)" : ""),
      percent(p.exposed),
      percent(p.bubble),
      percent(p.idle),
      remedy != nullptr ? remedy->limits : "-",
      format_count(static_cast<std::uint64_t>(row.gpu_hours))};
  if (question.cost_per_gpu_hour) {
    cells.push_back(row.cost ? format_count(static_cast<std::uint64_t>(*row.cost)) : "-");
  }
  return cells;
}

std::string remedy_of(const Row& row) {
  std::string text;
  for (const Remedy& remedy : row.remedies) {
    if (remedy.gain < kLeastGain) break;
    text += fmt::format("{}{} ({}): {} less time", text.empty() ? "" : "; ", remedy.words,
                        remedy.what, percent(remedy.gain));
    if (text.size() > 160) break;
  }
  return text.empty() ? "none of the what-ifs helps" : text;
}

std::string waits_of(const Row& row) {
  std::string text;
  for (const explain::Gain& cause : row.causes) {
    if (cause.gain < kLeastGain) break;
    text += fmt::format("{}without {}: {} less time", text.empty() ? "" : "; ",
                        name_of(cause.cause), percent(cause.gain));
  }
  return text.empty() ? "it waits for nothing that explain can take away" : text;
}

std::vector<std::string> rests_of(const Answer& answer, const Row& row) {
  std::vector<std::string> lines;
  std::istringstream text{rests_text(row.prediction.rests_on, answer.model)};
  for (std::string line; std::getline(text, line);) {
    constexpr std::string_view kNote = "note: ";
    lines.push_back(line.starts_with(kNote) ? line.substr(kNote.size()) : line);
  }
  return lines;
}

std::string headline_of(const Question& question, const std::vector<Answer>& answers) {
  std::string text;
  for (const Answer& answer : answers) {
    if (!text.empty()) text += " ";
    if (answer.best.empty() && !answer.refused.empty()) {
      text += fmt::format("{} on {} GPUs of {}: no layout that fits can be simulated: {}.",
                          question.model_name, answer.gpus, answer.machine, answer.refused_why);
      continue;
    }
    if (answer.best.empty()) {
      text += fmt::format(
          "{} on {} GPUs of {}: no layout fits (the smallest needs {:.1f} GB of a GPU).",
          question.model_name, answer.gpus, answer.machine, answer.least_bytes * 1e-9);
      continue;
    }
    const Row& best = answer.best.front();
    text += fmt::format(
        "{} on {} GPUs of {}: {} a step, {:.0f} tokens/s for each GPU, MFU {:.1f} %, limited by "
        "{}.",
        question.model_name, answer.gpus, answer.machine, seconds_text(best.prediction.seconds),
        best.tokens_per_gpu_second, 100 * best.mfu,
        best.remedies.empty() ? "-" : best.remedies.front().limits);
  }
  return text;
}

std::string meaning_of(const Question& question, const std::vector<Answer>& answers) {
  const sim::Peak peak = sim::mfu_peak(question.machine);
  std::string text = fmt::format(
      "Steps of {} sequences of {} tokens, {}parameters and moments {}, PyTorch's eager mode. ",
      question.global_batch, question.sequence, question.float8 ? "linear layers in float8, " : "",
      question.float32_parameters ? "float32" : "bfloat16");
  for (const Answer& answer : answers) {
    text +=
        fmt::format("{} GPUs of {}: {} valid layouts, {} of them fit, {} were simulated. ",
                    answer.gpus, answer.machine, answer.valid, answer.fitting, answer.simulated);
    if (answer.stopped) text += "Interrupted: what follows is what was known by then. ";
    if (!answer.unread.empty()) {
      text += fmt::format("{} more layouts are refused ({}): {}. ", answer.unread.size(),
                          answer.unread_why, fmt::join(answer.unread, "; "));
    }
    if (answer.refused.empty()) continue;
    text += fmt::format("Refused, since simulate cannot run them ({}): {}. ", answer.refused_why,
                        fmt::join(answer.refused, "; "));
  }
  text += fmt::format(
      "Not simulated is what cannot be among the best: what a micro-batch adds without stages, for "
      "all of them and the pipeline's idle ends, takes longer than theirs. MFU: 6 FLOPs for each "
      "token and parameter of a product (6N, the head too), 6 for each layer, token of the "
      "sequence "
      "and element of a query (attention's causal half), nothing that is computed again, over {} "
      "of "
      "the machine, {:.1f} TFLOP/s for each GPU{}. Shares are of the whole step, means over the "
      "ranks. Exposed: only "
      "NCCL runs, which communicates or waits for another rank. Bubble: only transfers between "
      "pipeline stages run (part of exposed). Host-bound: the GPU "
      "waits for its host thread. Limited by: of host, arithmetic, memory, links and network that "
      "whose doubling saves most, or the two that must be faster together. Memory: what simulate "
      "says of the row's scenario; a pipeline's last stage keeps no logits (return_outputs: "
      "false). "
      "Without: explain's causes taken away (calls of the host and links "
      "that take no time, nobody waits for another stage). GPU-hours{}: for 10^12 tokens. "
      "What rests on assumed parameters, or is NCCL's own price, is said where it is more than a "
      "fifth of the GPUs' time.",
      peak.key, peak.flops * 1e-12,
      peak.key == info(Param::GpuHalfFlops).key ? ", the datasheet's dense peak" : "",
      question.cost_per_gpu_hour ? ", cost" : "");
  return text;
}

std::string text_of(const Question& question, const std::vector<Answer>& answers) {
  TextTable table;
  for (const Column& column : columns_of(question)) {
    table.column(column.name, column.is_number ? TextTable::Align::Right : TextTable::Align::Left);
  }
  std::string remedies, cut;
  for_each_row(answers, [&](const Answer& answer, const Row& row, std::size_t number) {
    table.row(cells_of(question, answer, row, number));
    remedies +=
        fmt::format("row {}: {}\nrow {}: {}\n", number, remedy_of(row), number, waits_of(row));
    for (const std::string& line : rests_of(answer, row)) {
      remedies += fmt::format("row {}: {}\n", number, line);
    }
    if (row.prediction.simulated_passes < row.layout.passes) {
      cut += fmt::format("row {}: {} of {} micro-batches simulated, each further one as the last\n",
                         number, row.prediction.simulated_passes, row.layout.passes);
    }
  });
  return headline_of(question, answers) + "\n\n" + (table.empty() ? "" : table.markdown() + "\n") +
         remedies + cut + (remedies.empty() ? "" : "\n") + meaning_of(question, answers) + "\n";
}

std::string csv_of(const Question& question, const std::vector<Answer>& answers) {
  std::string text;
  for_each_row(answers, [&](const Answer& answer, const Row& row, std::size_t number) {
    const Json values = values_of(question, answer, row, number);
    std::string head, line;
    for (const auto& [name, value] : values.items()) {
      const std::string text_of_value = value.is_string() ? value.get<std::string>() : value.dump();
      head += fmt::format("{}{}", head.empty() ? "" : ",", csv_cell(name));
      line += fmt::format("{}{}", line.empty() ? "" : ",", csv_cell(text_of_value));
    }
    if (number == 1) text += head + "\n";
    text += line + "\n";
  });
  return text;
}

std::string json_of(const Question& question, const std::vector<Answer>& answers) {
  Json rows = Json::array();
  for_each_row(answers, [&](const Answer& answer, const Row& row, std::size_t number) {
    Json values = values_of(question, answer, row, number);
    Json remedies = Json::array();
    for (const Remedy& remedy : row.remedies) {
      remedies.push_back({{"what", remedy.what}, {"limits", remedy.limits}, {"gain", remedy.gain}});
    }
    values["layout"] = describe(row.layout);
    values["remedies"] = std::move(remedies);
    Json causes = Json::array();
    for (const explain::Gain& cause : row.causes) {
      causes.push_back({{"cause", name_of(cause.cause)},
                        {"with", change_of(cause.cause)},
                        {"gain", cause.gain}});
    }
    values["causes"] = std::move(causes);
    values["rests_on"] = rests_json(row.prediction.rests_on, answer.model);
    values["scenario"] = scenario_text(question, row.layout);
    rows.push_back(std::move(values));
  });
  Json counts = Json::array();
  for (const Answer& answer : answers) {
    counts.push_back({{"gpus", answer.gpus},
                      {"machine", answer.machine},
                      {"valid", answer.valid},
                      {"fitting", answer.fitting},
                      {"simulated", answer.simulated},
                      {"simulations", answer.work.simulations},
                      {"simulated_spans", answer.work.spans},
                      {"refused", answer.refused},
                      {"refused_why", answer.refused_why},
                      {"refused_by_reader", answer.unread},
                      {"interrupted", answer.stopped}});
  }
  const Json all{{"kind", "foretrace plan"},
                 {"schema_version", 1},
                 {"producer", "foretrace " FORETRACE_VERSION},
                 {"build", build_id()},
                 {"files", digests_of_read_files()},
                 {"model", question.model_name},
                 {"machine", question.machine.name},
                 {"what_ifs", question.what_ifs},
                 {"sequence", question.sequence},
                 {"global_batch", question.global_batch},
                 {"peak_flops", sim::mfu_peak(question.machine).flops},
                 {"meaning", meaning_of(question, answers)},
                 {"searched", counts},
                 {"rows", rows}};
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";  // names of files
}

}  // namespace foretrace::plan
