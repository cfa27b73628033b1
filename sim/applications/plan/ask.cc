#include "sim/applications/plan/ask.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "models/cost/kernel.h"
#include "models/nccl/time/collective_time.h"
#include "models/what_if/what_if.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/program/program_walk.h"

namespace foretrace::plan {
namespace {

/// What cannot be predicted is nothing: that layout is left out.
std::vector<double> predicted(const Wanted& wanted, const training::TrainingStep& step) {
  try {
    Machine machine = wanted.question.machine;
    apply_what_ifs(machine, wanted.what_ifs);
    return numbers_of(predict(machine, trial_of(wanted.layout, step), wanted.without, wanted.says));
  } catch (const UsageError&) {
    return {};
  }
}

/// Which kernel cuBLAS takes is slow to find out, and remembered: asked here, no child asks again.
class Products {
 public:
  void ask(const Machine& machine, const Program& program) {
    for_each_op(program, [&](const HostThread&, const Op& op, Around) {
      const auto* gemm = std::get_if<Gemm>(&op.kind);
      if (gemm == nullptr) return;
      const cost::Product product{.type = gemm->type,
                                  .m = gemm->m.eval({}),
                                  .n = gemm->n.eval({}),
                                  .k = gemm->k.eval({}),
                                  .transposes_a = gemm->transpose_a,
                                  .transposes_b = gemm->transpose_b};
      if (!asked_.insert(product).second) return;
      Reading read{machine};
      static_cast<void>(cost::gemm_cost(read, product));
    });
  }

 private:
  std::set<cost::Product> asked_;
};

/// Which channels NCCL finds is slow to find out, too, and remembered in the same way.
class Channels {
 public:
  /// What the communicators of `program` are made of: `ask` is about these.
  void take_from(const Program& program) {
    kinds_.clear();
    environment_ = program.environment;
    for (const Communicator& communicator : program.communicators) {
      std::set<std::uint32_t> nodes;
      for (const RankPlace& place : communicator.members) {
        nodes.insert(node_of_process(program, place.process));
      }
      kinds_.emplace(communicator.members.size(), nodes.size());
    }
  }

  void ask(const Machine& machine) const {
    for (const auto& [ranks, nodes] : kinds_) {
      try {
        static_cast<void>(nccl::tuning_for(machine, static_cast<std::uint32_t>(ranks),
                                           static_cast<std::uint32_t>(nodes), environment_));
      } catch (const UsageError&) {  // the simulation says so, and of which layout
      }
    }
  }

 private:
  std::set<std::pair<std::size_t, std::size_t>> kinds_;  ///< ranks, nodes
  std::map<std::string, std::string> environment_;
};

Folded steps_of(const Wanted& wanted) {
  const Layout& layout = wanted.layout;
  const std::int64_t passes = std::min(layout.passes, wanted.passes);
  const training::TrainingStep step = step_of(
      wanted.question, layout, passes == layout.passes ? std::nullopt : std::optional{passes});
  return wanted.folds ? folded(step, *wanted.folds) : Folded{{step}, 0};
}

}  // namespace

std::string why_not_simulated(const Wanted& wanted) {
  std::vector<Job> jobs;
  for (const training::TrainingStep& step : steps_of(wanted).steps) {
    jobs.emplace_back([&wanted, step]() -> std::vector<double> {
      try {
        Machine machine = wanted.question.machine;
        apply_what_ifs(machine, wanted.what_ifs);
        static_cast<void>(predict(machine, trial_of(wanted.layout, step), wanted.without));
      } catch (const UsageError& error) {
        const std::string_view why = error.what();
        return {why.begin(), why.end()};  // a child answers in numbers
      }
      return {};
    });
  }
  for (const std::vector<double>& letters : run_in_children(jobs)) {
    std::string why;
    for (const double letter : letters) why += static_cast<char>(letter);
    std::ranges::replace(why, '\n', ' ');
    constexpr std::string_view kMark = "error: ";
    const std::size_t mark = why.find(kMark);
    if (mark != std::string::npos) why.erase(0, mark + kMark.size());
    while (why.ends_with(' ')) why.pop_back();
    if (!why.empty()) return why;
  }
  return "it did not end";
}

std::vector<std::optional<Prediction>> simulated(const std::vector<Wanted>& wanted, Work& work,
                                                 const GoOn& go_on) {
  std::vector<Folded> all;
  std::vector<Job> jobs;
  static Products products;  // of all searches
  Channels channels;
  const Layout* of_channels = nullptr;
  for (const Wanted& one : wanted) {
    all.push_back(steps_of(one));
    if (all.back().steps.size() > 1) {
      const bool is_new = of_channels == nullptr || describe(*of_channels) != describe(one.layout);
      if (is_new) {
        of_channels = &one.layout;
        const Trial trial = trial_of(one.layout, all.back().steps.front());
        channels.take_from(trial.program);
        if (one.what_ifs.empty()) products.ask(one.question.machine, trial.program);
      }
      Machine machine = one.question.machine;
      apply_what_ifs(machine, one.what_ifs);
      channels.ask(machine);
    }
    for (const training::TrainingStep& step : all.back().steps) {
      jobs.emplace_back([&one, step] { return predicted(one, step); });
    }
  }
  const auto numbers = run_in_children(
      jobs, [&](std::size_t done) { return go_on(done * wanted.size() / jobs.size()); });
  work.simulations += jobs.size();
  std::vector<std::optional<Prediction>> answers;
  auto next = numbers.begin();
  for (const Folded& one : all) {
    std::vector<std::optional<Prediction>> parts;
    for (std::size_t i = 0; i < one.steps.size(); ++i) parts.push_back(prediction_from(*next++));
    for (const auto& part : parts) work.spans += part ? part->spans : 0;
    answers.push_back(unfolded(parts, one.further));
  }
  return answers;
}

}  // namespace foretrace::plan
