#include "sim/applications/plan/coarse.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "reports/table/text_table.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/training_step/expand.h"
#include "sim/applications/plan/bound.h"
#include "sim/applications/training/usage.h"
#include "sim/engine/children.h"

namespace foretrace::plan {
namespace {

constexpr std::size_t kSamples = 6;  // simulated: 40 ms of a core each
constexpr std::size_t kMostRows = 24;

/// A stage's peak grows by a layer's part for each layer, as times do (fold.h): a tenth of the
/// work. The first stage holds most activations, the last the head: one of them needs most.
training::PartBytes memory_of(const training::TrainingStep& step) {
  const Folded few = folded(step, Clock::AsItIs);
  training::PartBytes most{};
  for (const std::int64_t stage : {std::int64_t{0}, step.pipeline - 1}) {
    training::PartBytes memory = training::peak_memory(few.steps.back(), stage);
    if (few.steps.size() > 1) {
      const training::PartBytes less = training::peak_memory(few.steps.front(), stage);
      for (std::size_t i = 0; i < memory.size(); ++i) {
        const auto distance = static_cast<double>(memory[i] - less[i]);
        memory[i] += std::max(-memory[i], static_cast<std::int64_t>(few.further * distance));
      }
    }
    if (training::sum(memory) > training::sum(most)) most = memory;
    if (step.pipeline == 1) break;
  }
  return most;
}

/// Layouts that differ only in the size of micro-batches and in what is recomputed: the larger
/// those are, and the less is recomputed, the more memory they need.
using Family = std::vector<std::size_t>;

/// Of one family: whether `a` needs as much as `b`, or more.
bool needs_as_much(const Layout& a, const Layout& b) {
  return a.micro_batch >= b.micro_batch && a.recompute <= b.recompute;
}

/// First what needs least and what needs most: where they agree, all do. Then what is recomputed
/// most, the largest micro-batches first.
void sort_by_demand(const std::vector<Layout>& all, Family& family) {
  std::ranges::sort(family, {}, [&](std::size_t i) {
    return std::tuple{-static_cast<int>(all[i].recompute), -all[i].micro_batch};
  });
  const auto least = std::ranges::min_element(family, {}, [&](std::size_t i) {
    return std::tuple{-static_cast<int>(all[i].recompute), all[i].micro_batch};
  });
  std::rotate(family.begin(), least, least + 1);
  const auto most =
      std::ranges::min_element(family.begin() + 1, family.end(), {}, [&](std::size_t i) {
        return std::tuple{static_cast<int>(all[i].recompute), -all[i].micro_batch};
      });
  if (most != family.end()) std::rotate(family.begin() + 1, most, most + 1);
}

std::vector<Family> families_of(const std::vector<Layout>& all) {
  std::map<std::pair<std::string, bool>, Family> families;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Layout alike = all[i];
    const bool is_only_one = alike.passes == 1;  // nothing is kept for a next micro-batch
    alike.micro_batch = alike.passes = 1;
    alike.recompute = training::Recompute::None;
    families[{short_name(alike), is_only_one}].push_back(i);
  }
  std::vector<Family> list;
  for (auto& [name, family] : families) {
    sort_by_demand(all, family);
    list.push_back(std::move(family));
  }
  return list;
}

/// Index, bytes, fits, is tight, bound: of those that fit, and of the one that needs least. What
/// another one says has infinite bytes: settle_memory() knows them.
void judge_family(const Question& question, const std::vector<Layout>& all, const Family& family,
                  std::vector<double>& figures) {
  std::vector<const Layout*> fitting, refused;
  for (const std::size_t i : family) {
    const Layout& layout = all[i];
    const auto is_more = [&](const Layout* one) { return needs_as_much(layout, *one); };
    const auto is_less = [&](const Layout* one) { return needs_as_much(*one, layout); };
    if (std::ranges::any_of(refused, is_more)) continue;
    sim::MemoryVerdict verdict{.bytes = std::numeric_limits<double>::infinity()};
    if (std::ranges::none_of(fitting, is_less)) {
      verdict = sim::memory_verdict(memory_of(step_of(question, layout)), question.machine);
      (verdict.fits ? fitting : refused).push_back(&layout);
    }
    if (!verdict.fits && i != family.front()) continue;
    figures.insert(figures.end(), {static_cast<double>(i), verdict.bytes, verdict.fits ? 1.0 : 0.0,
                                   verdict.is_tight ? 1.0 : 0.0,
                                   verdict.fits ? arithmetic_bound(question, layout) : 0.0});
  }
}

/// In the order of `all`; on all cores.
std::vector<CoarseRow> judged(const Question& question, const std::vector<Layout>& all) {
  constexpr std::size_t kOfAChild = 8, kFigures = 5;
  const std::vector<Family> families = families_of(all);
  std::vector<Job> jobs;
  for (std::size_t begin = 0; begin < families.size(); begin += kOfAChild) {
    jobs.emplace_back([&question, &all, &families, begin] {
      std::vector<double> figures;
      for (std::size_t i = begin; i < std::min(begin + kOfAChild, families.size()); ++i) {
        judge_family(question, all, families[i], figures);
      }
      return figures;
    });
  }
  std::map<std::size_t, CoarseRow> rows;
  for (const auto& part : run_in_children(jobs)) {
    for (std::size_t i = 0; i + kFigures <= part.size(); i += kFigures) {
      const auto at = static_cast<std::size_t>(part[i]);
      rows[at] = {all[at], {part[i + 1], part[i + 2] != 0, part[i + 3] != 0}, part[i + 4]};
    }
  }
  std::vector<CoarseRow> list;
  for (auto& [at, row] : rows) list.push_back(std::move(row));
  return list;
}

std::vector<CoarseRow> fitting_rows(const Question& question, CoarseAnswer& answer) {
  const std::vector<Layout> all = layouts(question, answer.gpus);
  if (all.empty()) {
    throw UsageError{fmt::format(
        "no layout of {} GPUs divides {} sequences and the model evenly\n  hint: another "
        "--global-batch, or other --gpus",
        answer.gpus, question.global_batch)};
  }
  answer.tried = all.size();
  std::vector<CoarseRow> rows = judged(question, all);
  answer.least_bytes = std::numeric_limits<double>::max();
  for (const CoarseRow& row : rows)
    answer.least_bytes = std::min(answer.least_bytes, row.fit.bytes);
  std::erase_if(rows, [](const CoarseRow& row) { return !row.fit.fits; });
  answer.fitting = rows.size();
  return rows;
}

/// What is shown has the memory of all its layers: experts' peaks do not grow evenly with them.
void settle_memory(const Question& question, std::vector<CoarseRow>& rows) {
  constexpr std::size_t kOfAChild = 6, kFigures = 3;
  std::vector<Job> jobs;
  for (std::size_t begin = 0; begin < rows.size(); begin += kOfAChild) {
    jobs.emplace_back([&question, &rows, begin] {
      std::vector<double> figures;
      for (std::size_t i = begin; i < std::min(begin + kOfAChild, rows.size()); ++i) {
        const auto verdict = sim::memory_verdict(
            training::peak_memory(step_of(question, rows[i].layout)), question.machine);
        figures.insert(figures.end(),
                       {verdict.bytes, verdict.fits ? 1.0 : 0.0, verdict.is_tight ? 1.0 : 0.0});
      }
      return figures;
    });
  }
  std::size_t at = 0;
  for (const auto& part : run_in_children(jobs)) {
    for (std::size_t i = 0; i + kFigures <= part.size(); i += kFigures) {
      rows[at++].fit = {part[i], part[i + 1] != 0, part[i + 2] != 0};
    }
  }
  std::erase_if(rows, [](const CoarseRow& one) { return !one.fit.fits; });
}

/// Whose arithmetic is equal is faster the fewer GPUs must exchange activations.
auto order_of(const CoarseRow& row) {
  const Layout& layout = row.layout;
  return std::tuple{row.bound, layout.tensor * layout.context, layout.expert, -layout.micro_batch};
}

nlohmann::ordered_json values_of(const Question& question, const CoarseRow& row) {
  const Layout& layout = row.layout;
  nlohmann::ordered_json values{{"gpus", layout.gpus}, {"layout", describe(layout)}};
  for (const auto& [name, value] : choices_of(layout)) values[name] = value;
  const auto tokens = static_cast<double>(question.global_batch * question.sequence);
  values["at_least_s"] = row.bound;
  values["tokens_per_s_per_gpu_at_most"] = tokens / row.bound / static_cast<double>(layout.gpus);
  values["memory_gb"] = row.fit.bytes * 1e-9;
  values["memory_is_tight"] = row.fit.is_tight;
  return values;
}

}  // namespace

CoarseAnswer coarse_plan(const Question& question, std::int64_t gpus) {
  CoarseAnswer answer;
  answer.gpus = gpus;
  std::vector<CoarseRow> rows = fitting_rows(question, answer);
  std::ranges::stable_sort(rows, {}, order_of);
  std::map<std::string, std::size_t> known;
  std::vector<Wanted> samples;
  std::vector<std::size_t> at;
  for (const CoarseRow& row : rows) {
    const Sample sample = sample_of(question, row.layout);
    const std::string name = short_name(sample.layout);
    if (!known.contains(name) && samples.size() == kSamples) continue;
    const auto [found, is_new] = known.emplace(name, samples.size());
    answer.rows.push_back(row);
    at.push_back(found->second);
    if (!is_new) continue;
    samples.push_back(times_of(sample));
  }
  Work work;
  const auto predictions = simulated(samples, work, [](std::size_t) { return true; });
  for (std::size_t i = 0; i < answer.rows.size(); ++i) {
    const auto& sample = predictions[at[i]];
    CoarseRow& row = answer.rows[i];
    if (sample) row.bound = std::max(row.bound, pass_bound(row.layout, sample->next_pass));
  }
  std::ranges::stable_sort(answer.rows, {}, &CoarseRow::bound);
  if (answer.rows.size() > kMostRows) answer.rows.resize(kMostRows);
  settle_memory(question, answer.rows);
  return answer;
}

std::string text_of(const Question& question, const std::vector<CoarseAnswer>& answers) {
  std::string text;
  for (const CoarseAnswer& answer : answers) {
    TextTable table;
    table.column("layout", TextTable::Align::Left);
    table.column("a step takes at least", TextTable::Align::Right);
    table.column("memory", TextTable::Align::Right);
    for (const CoarseRow& row : answer.rows) {
      table.row({describe(row.layout), format_time(row.bound * 1e9),
                 sim::gigabytes(row.fit.bytes) + (row.fit.is_tight ? " (tight)" : "")});
    }
    text += fmt::format(
        "{} on {} GPUs of {}: {} layouts, {} of them fit (the smallest needs {}); of {} a bound:\n",
        question.model_name, answer.gpus, question.machine.name, answer.tried, answer.fitting,
        sim::gigabytes(answer.least_bytes), answer.rows.size());
    if (!table.empty()) text += "\n" + table.markdown() + "\n";
  }
  return text + "Bounds are below the steps' times; without --coarse the best are simulated.\n";
}

std::string json_of(const Question& question, const std::vector<CoarseAnswer>& answers) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array(), counts = Json::array();
  for (const CoarseAnswer& answer : answers) {
    for (const CoarseRow& row : answer.rows) rows.push_back(values_of(question, row));
    counts.push_back({{"gpus", answer.gpus},
                      {"tried", answer.tried},
                      {"fitting", answer.fitting},
                      {"least_memory_gb", answer.least_bytes * 1e-9}});
  }
  const Json all{{"kind", "foretrace coarse plan"},
                 {"schema_version", 1},
                 {"model", question.model_name},
                 {"machine", question.machine.name},
                 {"gpus_per_node", question.machine.gpus_per_node},
                 {"sequence", question.sequence},
                 {"global_batch", question.global_batch},
                 {"searched", counts},
                 {"rows", rows}};
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace foretrace::plan
