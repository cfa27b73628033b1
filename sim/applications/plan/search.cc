#include "sim/applications/plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <span>

#include "models/machine/parts/limit_names.h"
#include "models/nccl/topology/machine.h"
#include "scenarios/base/text/errors.h"
#include "sim/applications/plan/bound.h"
#include "sim/applications/training/passes.h"
#include "sim/applications/training/usage.h"
#include "sim/engine/children.h"

namespace foretrace::plan {
namespace {

struct Faster {
  const char* what;
  std::string limits;
  std::string words;
};

/// Half is all that doubling everything saves. Where what each saves alone adds up to this, nothing
/// is hidden behind something else.
constexpr double kMostOfHalf = 0.35;

/// What the rows ask by themselves: each twice as fast.
const std::array kFaster{
    Faster{"host=2x", "the host", "half the host's time for a call: CUDA graphs, a compiled step"},
    Faster{"gemm=2x", "arithmetic", "twice the arithmetic"},
    Faster{"hbm=2x", "device memory", "twice the memory bandwidth, or fewer pointwise kernels"},
    Faster{"nvlink=2x", "", ""},  // on_this_machine says what they are
    Faster{"nic=2x", "", ""}};

/// Two of kFaster at once.
using Pair = std::pair<std::size_t, std::size_t>;

std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < kFaster.size(); ++i) {
    for (std::size_t j = i + 1; j < kFaster.size(); ++j) pairs.emplace_back(i, j);
  }
  return pairs;
}

/// What a training step can be without: of explain's causes.
std::span<const explain::Cause> causes_of(const Layout& layout) {
  static constexpr std::array kCauses{explain::Cause::Host, explain::Cause::Communication,
                                      explain::Cause::Bubble};
  return std::span{kCauses}.first(layout.pipeline == 1 ? 2 : kCauses.size());
}

class Search {
 public:
  Search(const Question& question, std::int64_t gpus, const Progress& progress)
      : question_{question}, progress_{progress} {
    answer_.gpus = gpus;
    answer_.machine = question.machine.name;
    answer_.model = question.machine;
    answer_.what_ifs = question.what_ifs;
  }

  Answer run() {
    find_fitting();
    bound();
    simulate_all();
    simulate_whole();
    ask_about_rows();
    answer_.stopped = stopped_;
    for (Row& row : rows_) count(row);
    answer_.best = std::move(rows_);
    return std::move(answer_);
  }

 private:
  /// Tells how far one step of the search is.
  GoOn telling(const char* doing, std::size_t before, std::size_t all) {
    const auto tell = [this, doing, before, all](std::size_t done) {
      const Row* const best = best_.empty() ? nullptr : &best_.front();
      stopped_ = stopped_ || !progress_({answer_.gpus, doing, before + done, all, best});
      return !stopped_;
    };
    tell(0);
    return tell;
  }

  void find_fitting() {
    const std::vector<Layout> all = layouts(question_, answer_.gpus);
    if (all.empty()) {
      throw UsageError{fmt::format(
          "no layout of {} GPUs divides {} sequences and the model evenly\n  hint: another "
          "--global-batch, or other --gpus",
          answer_.gpus, question_.global_batch)};
    }
    constexpr std::size_t kOfAChild = 6;
    std::vector<Job> jobs;
    for (std::size_t begin = 0; begin < all.size(); begin += kOfAChild) {
      jobs.emplace_back([this, &all, begin] {
        std::vector<double> numbers;
        for (std::size_t i = begin; i < std::min(begin + kOfAChild, all.size()); ++i) {
          const auto fit = fit_of(question_, all[i]);
          numbers.insert(numbers.end(),
                         {fit ? 1.0 : 0.0, fit ? fit->bytes : 0, fit && fit->fits ? 1.0 : 0.0,
                          fit && fit->is_tight ? 1.0 : 0.0});
        }
        return numbers;
      });
    }
    answer_.least_bytes = std::numeric_limits<double>::max();
    const auto tell = telling("memory", 0, all.size());
    const auto fits = run_in_children(
        jobs, [&](std::size_t done) { return tell(std::min(done * kOfAChild, all.size())); });
    for (std::size_t job = 0; job < fits.size(); ++job) {
      const auto& numbers = fits[job];
      std::size_t at = job * kOfAChild;
      for (std::size_t i = 0; i < numbers.size(); i += 4, ++at) {
        if (numbers[i] == 0) {
          answer_.unread.push_back(describe(all[at]));
          continue;
        }
        ++answer_.valid;
        answer_.least_bytes = std::min(answer_.least_bytes, numbers[i + 1]);
        if (numbers[i + 2] == 0) continue;
        ++answer_.fitting;
        Row row;
        row.layout = all[at];
        row.fit = {numbers[i + 1], true, numbers[i + 3] != 0};
        row.bound = arithmetic_bound(question_, row.layout);
        rows_.push_back(row);
      }
    }
    if (!answer_.unread.empty()) {
      const auto first = std::ranges::find(all, answer_.unread.front(),
                                           [](const Layout& layout) { return describe(layout); });
      answer_.unread_why = why_refused(question_, *first);
    }
  }

  Wanted wanted(const Layout& layout, std::int64_t passes, std::optional<Clock> folds) const {
    return {question_, layout, passes, folds, {}, {}};
  }

  /// What a micro-batch adds where nothing waits for other stages is close to its part of the step,
  /// and cheap: most layouts share it.
  void bound() {
    std::map<std::string, std::size_t> known;
    std::vector<Wanted> samples;
    std::vector<std::size_t> at;
    for (const Row& row : rows_) {
      const Sample sample = sample_of(question_, row.layout);
      const auto [found, is_new] = known.emplace(short_name(sample.layout), samples.size());
      at.push_back(found->second);
      if (!is_new) continue;
      samples.push_back(times_of(sample));
    }
    const auto predictions =
        simulated(samples, answer_.work, telling("lower bounds", 0, samples.size()));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const auto& sample = predictions[at[i]];
      if (!sample) continue;
      Row& row = rows_[i];
      row.bound = std::max(row.bound, pass_bound(row.layout, sample->next_pass));
    }
    std::ranges::stable_sort(rows_, {}, &Row::bound);
  }

  /// In the order of their lower bounds, until none that is left can be among the best.
  void simulate_all() {
    constexpr std::size_t kWave = 4;  // the same on all machines, and so the same answer
    for (std::size_t begin = 0; begin < rows_.size() && !stopped_; begin += kWave) {
      if (best_.size() >= question_.top &&
          rows_[begin].bound > best_[question_.top - 1].prediction.seconds) {
        break;
      }
      std::vector<Wanted> open;
      const std::size_t end = std::min(begin + kWave, rows_.size());
      for (std::size_t i = begin; i < end; ++i) {
        const Layout& layout = rows_[i].layout;
        open.push_back(wanted(layout, settled_passes(layout), Clock::Settled));
      }
      const auto predictions =
          simulated(open, answer_.work, telling("simulated", begin, rows_.size()));
      for (std::size_t i = begin; i < end; ++i) {
        const auto& prediction = predictions[i - begin];
        if (prediction) {
          rows_[i].settled = rows_[i].prediction = *prediction;
          best_.push_back(rows_[i]);
        } else if (!stopped_) {
          if (answer_.refused.empty()) answer_.refused_why = why_not_simulated(open[i - begin]);
          answer_.refused.push_back(describe(rows_[i].layout));
        }
      }
      answer_.simulated = best_.size();
      sort(best_);
    }
    rows_ = std::move(best_);
    keep_best();
    best_ = rows_;
  }

  /// The fastest, and what may be as fast: few layers say what all of them take, but not to the
  /// last percent.
  void keep_best() {
    constexpr double kAsFast = 1.02;
    constexpr std::size_t kMostMore = 3;
    if (rows_.size() <= question_.top) return;
    const double last = rows_[question_.top - 1].prediction.seconds;
    std::size_t kept = question_.top;
    while (kept < std::min(rows_.size(), question_.top + kMostMore) &&
           rows_[kept].prediction.seconds < kAsFast * last) {
      ++kept;
    }
    rows_.resize(kept);
  }

  /// What is printed is what `simulate` prints of the scenario: with all micro-batches where that
  /// ends in some seconds, else with --few-passes.
  void simulate_whole() {
    constexpr std::int64_t kMostLayerPasses = 12'000;
    const std::int64_t most = kMostLayerPasses / question_.architecture.layers;
    std::vector<Wanted> whole;
    for (const Row& row : rows_) {
      const Layout& layout = row.layout;
      const std::int64_t passes = layout.passes <= most
                                      ? layout.passes
                                      : sim::with_fewer_passes(step_of(question_, layout)).passes;
      whole.push_back(wanted(layout, passes, {}));
    }
    if (stopped_) {
      rows_.resize(std::min(rows_.size(), question_.top));
      return;
    }
    const auto predictions =
        simulated(whole, answer_.work, telling("best ones whole", 0, whole.size()));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (predictions[i]) rows_[i].prediction = *predictions[i];
    }
    sort(rows_);
    rows_.resize(std::min(rows_.size(), question_.top));
  }

  /// What makes each row faster, and what it would be without.
  void ask_about_rows() {
    for (Row& row : rows_) {
      if (stopped_) return;
      std::vector<Wanted> changed;
      Wanted now = wanted(row.layout, settled_passes(row.layout), Clock::Settled);
      now.says = Says::TimesOnly;
      for (const Faster& faster : kFaster) {
        changed.push_back(now);
        changed.back().what_ifs = {faster.what};
      }
      for (const explain::Cause cause : causes_of(row.layout)) {
        changed.push_back(now);
        changed.back().without = cause;
      }
      const auto at = static_cast<std::size_t>(&row - rows_.data());
      const auto then = simulated(changed, answer_.work,
                                  [&, tell = telling("what would help", at, rows_.size())](
                                      std::size_t) { return tell(0); });
      add_remedies(row, then);
      if (gains_alone(row, then) < kMostOfHalf) add_pairs(row, now, then);
      add_causes(row, std::span{then}.subspan(kFaster.size()));
    }
  }

  using Predictions = std::span<const std::optional<Prediction>>;

  /// Share of a row's time that a change saves.
  static std::optional<double> gain_of(const Row& row, const std::optional<Prediction>& then) {
    if (!then) return std::nullopt;
    return 1 - then->seconds / row.settled.seconds;
  }

  /// Links and networks by what they are on this machine.
  Faster on_this_machine(Faster faster) const {
    if (!faster.limits.empty()) return faster;
    const Machine& machine = question_.machine;
    const bool of_links = faster.what == std::string_view{"nvlink=2x"};
    faster.limits = of_links ? link_name(machine) : network_name(machine);
    if (of_links && nccl::lacks_nvlink(machine)) {
      faster.words = "GPUs with links of their own, or its transfers behind kernels";
    } else {
      faster.words =
          fmt::format("twice the bandwidth of {}, or its transfers behind kernels", faster.limits);
    }
    return faster;
  }

  static double gains_alone(const Row& row, Predictions then) {
    double sum = 0;
    for (std::size_t i = 0; i < kFaster.size(); ++i) {
      sum += std::max(0.0, gain_of(row, then[i]).value_or(0));
    }
    return sum;
  }

  /// Resources that work at the same time bind together: neither alone gains what both do.
  void add_pairs(Row& row, const Wanted& now, Predictions alone) {
    constexpr double kTogether = 0.05;  // beyond what each gains by itself
    const std::vector<Pair> pairs = all_pairs();
    std::vector<Wanted> changed;
    for (const auto& [one, other] : pairs) {
      changed.push_back(now);
      changed.back().what_ifs = {kFaster[one].what, kFaster[other].what};
    }
    const auto both = simulated(changed, answer_.work, [this](std::size_t) { return !stopped_; });
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const Faster a = on_this_machine(kFaster[pairs[i].first]);
      const Faster b = on_this_machine(kFaster[pairs[i].second]);
      const auto gain = gain_of(row, both[i]);
      const double each = std::max(0.0, gain_of(row, alone[pairs[i].first]).value_or(0)) +
                          std::max(0.0, gain_of(row, alone[pairs[i].second]).value_or(0));
      if (!gain || *gain < each + kTogether) continue;
      row.remedies.push_back({fmt::format("{} {}", a.what, b.what),
                              fmt::format("{} and {} together", a.limits, b.limits),
                              fmt::format("both {}, and {}", a.words, b.words), *gain});
    }
    std::ranges::stable_sort(row.remedies, std::greater{}, &Remedy::gain);
  }

  void add_remedies(Row& row, Predictions then) const {
    const Prediction& now = row.settled;
    for (std::size_t i = 0; i < kFaster.size(); ++i) {
      const auto gain = gain_of(row, then[i]);
      if (!gain) continue;
      const Faster faster = on_this_machine(kFaster[i]);
      row.remedies.push_back({faster.what, faster.limits, faster.words, *gain});
    }
    if (row.layout.pipeline > 1 && now.next_pass > 0) add_larger_batch(row, now);
    std::ranges::stable_sort(row.remedies, std::greater{}, &Remedy::gain);
  }

  static void add_causes(Row& row, Predictions then) {
    const auto causes = causes_of(row.layout);
    for (std::size_t i = 0; i < causes.size(); ++i) {
      if (!then[i]) continue;
      row.causes.push_back(explain::gain_of(causes[i], row.settled.seconds, then[i]->seconds));
    }
    std::ranges::stable_sort(row.causes, std::greater{}, &explain::Gain::gain);
  }

  /// Twice the micro-batches fill a pipeline better: time for each token.
  void add_larger_batch(Row& row, const Prediction& now) const {
    const double further = static_cast<double>(row.layout.passes) * now.next_pass;
    row.remedies.push_back({fmt::format("global batch {}", 2 * question_.global_batch),
                            "the pipeline's idle ends", "twice the micro-batches",
                            1 - (now.seconds + further) / (2 * now.seconds)});
  }

  void count(Row& row) const {
    constexpr double kTokens = 1e12;
    constexpr double kHour = 3600;
    const auto gpus = static_cast<double>(row.layout.gpus);
    const auto tokens = static_cast<double>(question_.global_batch * question_.sequence);
    training::TrainingStep step;
    step.model = question_.architecture;
    step.sequence = question_.sequence;
    step.micro_batch = question_.global_batch;
    const double seconds = row.prediction.seconds;
    row.tokens_per_gpu_second = tokens / seconds / gpus;
    row.mfu = training::model_flops(step) / seconds / gpus / sim::mfu_peak(question_.machine).flops;
    row.gpu_hours = kTokens / row.tokens_per_gpu_second / kHour;
    if (question_.cost_per_gpu_hour) row.cost = row.gpu_hours * *question_.cost_per_gpu_hour;
  }

  static void sort(std::vector<Row>& rows) {
    std::ranges::stable_sort(rows, {}, [](const Row& row) { return row.prediction.seconds; });
  }

  const Question& question_;
  const Progress& progress_;
  Answer answer_;
  std::vector<Row> rows_;
  std::vector<Row> best_;  ///< so far, the fastest first
  bool stopped_ = false;
};

}  // namespace

Answer search(const Question& question, std::int64_t gpus, const Progress& progress) {
  return Search{question, gpus, progress}.run();
}

}  // namespace foretrace::plan
