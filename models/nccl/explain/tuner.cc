#include "models/nccl/explain/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "models/constants/constants.h"
#include "models/machine/reading.h"
#include "models/nccl/rules/plan.h"
#include "models/trust/trust.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::nccl {
namespace {

constexpr double kStepsPerDoubling = 4;

/// One way to do operations: settings, and what NCCL makes of them.
struct Way {
  std::map<std::string, std::string> settings;
  Tuning tuning;
};

struct At {
  Plan plan;
  std::size_t way = 0;
  Gain gain;
};

class Tuner {
 public:
  Tuner(const Machine& machine, const TunerQuestion& question)
      : machine_{machine}, question_{question} {
    add({});
    const std::uint32_t own = ways_.front().tuning.channels;
    for (const Algorithm algorithm :
         {Algorithm::Tree, Algorithm::Ring, Algorithm::Nvls, Algorithm::NvlsTree, Algorithm::Pat}) {
      for (const Protocol protocol : {Protocol::LL, Protocol::LL128, Protocol::Simple}) {
        if (!is_possible(algorithm, protocol)) continue;
        const std::map<std::string, std::string> both{
            {"NCCL_ALGO", std::string{name_of(algorithm)}},
            {"NCCL_PROTO", std::string{name_of(protocol)}}};
        add(both);
        for (const std::uint32_t channels : {own / 4, own / 2, own * 4 / 3}) {
          if (channels == 0 || channels == own || channels > kMaxChannels) continue;
          if (question_.by_plugin && channels > own) continue;
          auto limited = both;
          limited[channels < own ? "NCCL_MAX_NCHANNELS" : "NCCL_MIN_NCHANNELS"] =
              std::to_string(channels);
          add(limited);
        }
      }
    }
  }

  void tune(CollectiveKind kind, Tuned& tuned) {
    kind_ = kind;
    const std::vector<std::uint64_t> sizes = grid();
    std::vector<At> found;
    for (const std::uint64_t size : sizes) found.push_back(at(size, tuned));
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
      const bool same = found[i].way == found[i + 1].way;
      const std::size_t way = same ? found[i].way : 0;
      Gain gain = found[i].gain;
      if (same && found[i + 1].gain.low < gain.low) gain = found[i + 1].gain;
      const bool last = i + 2 == sizes.size();
      add_ranges(sizes[i], last ? sizes[i + 1] : sizes[i + 1] - 1, way, way == 0 ? Gain{} : gain,
                 tuned);
    }
  }

 private:
  bool is_possible(Algorithm algorithm, Protocol protocol) const {
    for (const CollectiveKind kind : question_.kinds) {
      const Request request{function_of(kind), {question_.last_bytes}};
      for (const Candidate& one : priced_candidates(ways_.front().tuning, request)) {
        if (one.algorithm == algorithm && one.protocol == protocol && one.out.empty()) return true;
      }
    }
    return false;
  }

  void add(const std::map<std::string, std::string>& settings) {
    auto environment = question_.environment;
    for (const auto& [name, value] : settings) environment[name] = value;
    ways_.push_back(
        {settings, tuning_for(machine_, question_.ranks, question_.nodes, environment)});
  }

  std::vector<std::uint64_t> grid() const {
    const std::uint64_t whole = std::uint64_t{16} * question_.ranks;
    std::vector<std::uint64_t> sizes;
    for (double size = static_cast<double>(question_.first_bytes);
         size < static_cast<double>(question_.last_bytes);
         size *= std::exp2(1 / kStepsPerDoubling)) {
      const auto one = std::max(whole, static_cast<std::uint64_t>(size) / whole * whole);
      if (sizes.empty() || one > sizes.back()) sizes.push_back(one);
    }
    if (question_.last_bytes > sizes.back()) sizes.push_back(question_.last_bytes);
    return sizes;
  }

  Request request(std::uint64_t bytes) const { return {function_of(kind_), {bytes}}; }

  bool has_way(const Way& way, std::uint64_t bytes) const {
    return std::ranges::any_of(priced_candidates(way.tuning, request(bytes)),
                               [](const Candidate& one) { return one.out.empty(); });
  }

  CollectiveTime time(Reading& read, const Way& way, std::uint64_t bytes, const Plan& plan) const {
    return planned_time(read, way.tuning, kind_, {bytes}, plan);
  }

  At at(std::uint64_t bytes, Tuned& tuned) const {
    At best{plan_of(ways_.front().tuning, request(bytes)), 0, {}};
    const Plan own = best.plan;
    Reading read{machine_};
    const CollectiveTime own_time = time(read, ways_.front(), bytes, own);
    ++tuned.compared;
    if (own_time.model == Model::Price) {
      ++tuned.without_times;
      return best;
    }
    double least = own_time.terms.seconds;
    for (std::size_t i = 1; i < ways_.size(); ++i) {
      if (!has_way(ways_[i], bytes)) continue;
      const Plan plan = plan_of(ways_[i].tuning, request(bytes));
      const CollectiveTime other = time(read, ways_[i], bytes, plan);
      if (other.model == Model::Price) {
        ++tuned.others_untimed;
      } else if (other.terms.seconds < least) {
        least = other.terms.seconds;
        best.plan = plan;
        best.way = i;
      }
    }
    if (best.way == 0) return best;
    best.gain = gain_of(bytes, own, best);
    if (best.gain.low > 1) return best;
    ++tuned.unsure;
    return {own, 0, {}};
  }

  /// The band is the ratio's: what puts both times off alike does not count. LL on more channels
  /// than NCCL would take was slower than predicted wherever it was measured.
  Gain gain_of(std::uint64_t bytes, const Plan& own, const At& other) const {
    const auto seconds = [&](Reading& read) {
      return std::pair{time(read, ways_.front(), bytes, own).terms.seconds,
                       time(read, ways_[other.way], bytes, other.plan).terms.seconds};
    };
    const auto ratio = [&](Reading& read) {
      const auto [before, after] = seconds(read);
      return before / after;
    };
    Reading read{machine_};
    const auto [before, after] = seconds(read);
    const Band band = band_of(machine_, shares_of(machine_, ratio), {bytes});
    static const double kSlower = constant("nccl.tuner.ll_more_channels");
    const bool has_more =
        other.plan.protocol == Protocol::LL && other.plan.max_channels > own.max_channels;
    const double factor = before / after;
    const double low = factor * band.low / (has_more ? kSlower : 1);
    return {before * 1e6, after * 1e6, factor, low, factor * band.high};
  }

  /// A range for each number of channels that NCCL would take this way.
  void add_ranges(std::uint64_t first, std::uint64_t last, std::size_t way, const Gain& gain,
                  Tuned& tuned) const {
    const auto plan_at = [&](std::uint64_t bytes) {
      return plan_of(ways_[way].tuning, request(bytes));
    };
    while (first <= last) {
      const Plan plan = plan_at(first);
      const auto alike = [&](std::uint64_t bytes) {
        const Plan other = plan_at(bytes);
        return other.algorithm == plan.algorithm && other.protocol == plan.protocol &&
               other.max_channels == plan.max_channels;
      };
      std::uint64_t low = first, high = last;
      while (low < high) {
        const std::uint64_t middle = low + (high - low + 1) / 2;
        if (alike(middle)) {
          low = middle;
        } else {
          high = middle - 1;
        }
      }
      add_range({kind_, first, low, plan.algorithm, plan.protocol, plan.max_channels,
                 ways_[way].settings, gain},
                tuned.ranges);
      first = low + 1;
    }
  }

  static void add_range(const TunedRange& range, std::vector<TunedRange>& ranges) {
    if (!ranges.empty()) {
      TunedRange& before = ranges.back();
      if (before.kind == range.kind && before.algorithm == range.algorithm &&
          before.protocol == range.protocol && before.channels == range.channels &&
          before.settings == range.settings) {
        before.last_bytes = range.last_bytes;
        if (range.gain.low < before.gain.low) before.gain = range.gain;
        return;
      }
    }
    ranges.push_back(range);
  }

  const Machine& machine_;
  const TunerQuestion& question_;
  std::vector<Way> ways_;  ///< NCCL's own first
  CollectiveKind kind_{};
};

}  // namespace

Tuned tune_machine(const Machine& machine, const TunerQuestion& question) {
  if (question.ranks < 2 || question.first_bytes == 0) {
    throw UsageError{"NCCL's choice needs two ranks and sizes from 1 byte on"};
  }
  if (question.first_bytes >= question.last_bytes) {
    throw UsageError{fmt::format("sizes from {} to {} bytes are none", question.first_bytes,
                                 question.last_bytes)};
  }
  Tuned tuned{question, {}, 0, 0, 0, 0};
  Tuner tuner{machine, question};
  for (const CollectiveKind kind : question.kinds) tuner.tune(kind, tuned);
  return tuned;
}

}  // namespace foretrace::nccl
