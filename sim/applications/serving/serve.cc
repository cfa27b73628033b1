#include "sim/applications/serving/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <queue>
#include <set>

#include "scenarios/base/text/errors.h"
#include "scenarios/serving/random_numbers.h"

namespace foretrace::serving {
namespace {

constexpr std::uint64_t kClients = std::uint64_t{1} << 62U;  // streams of the traffic are below

std::int64_t nanoseconds(double seconds) {
  return std::max<std::int64_t>(1, std::llround(seconds * 1e9));
}

/// Requests come in the order of the traffic; those of a closed loop when one has ended.
class Source {
 public:
  Source(const std::vector<Arrival>& arrivals, const Fleet& fleet)
      : arrivals_{arrivals},
        answers_after_ns_{fleet.client_ns},
        seed_{fleet.engines.serving.traffic.seed} {
    while (known_ < arrivals.size() && arrivals[known_].at_ns) ++known_;
    for (std::size_t i = 0; i < known_; ++i) times_.push_back(*arrivals[i].at_ns);
  }
  bool has_next() const { return next_ < times_.size(); }
  std::int64_t next_ns() const { return times_[next_]; }
  Request take() {
    Request request;
    request.id = static_cast<std::int64_t>(next_);
    request.arrival_ns = times_[next_];
    request.prompt = arrivals_[next_].prompt;
    request.output = arrivals_[next_].output;
    ++next_;
    return request;
  }
  void ended(std::int64_t now_ns) {
    if (times_.size() == arrivals_.size()) return;
    const std::int64_t at_ns = now_ns + drawn_ns();
    times_.insert(std::ranges::upper_bound(times_.begin() + static_cast<std::ptrdiff_t>(next_),
                                           times_.end(), at_ns),
                  at_ns);
  }

 private:
  /// Until a client has its last token and the next request has come; exponential.
  std::int64_t drawn_ns() const {
    if (answers_after_ns_ == 0) return 0;
    RandomNumbers random{seed_, kClients + times_.size()};
    return scaled(random.exponential(), answers_after_ns_);
  }

  const std::vector<Arrival>& arrivals_;
  std::int64_t answers_after_ns_;
  std::uint64_t seed_;
  std::vector<std::int64_t> times_;
  std::size_t known_ = 0, next_ = 0;
};

struct Engine {
  const Engines* kind = nullptr;
  std::vector<Scheduler> groups;
  struct Running {
    std::int64_t end_ns = 0;
    std::vector<std::vector<Share>> shares;  ///< of each group
  };
  std::deque<Running> running;        ///< iterations, one in each stage of a pipeline at most
  std::vector<std::int64_t> free_ns;  ///< from when on a stage takes the next one
  std::vector<std::uint32_t> ended;   ///< requests
  Served served;
};

std::size_t load_of(const Scheduler& group) { return group.running() + group.waiting(); }

class Run {
 public:
  Run(const Fleet& fleet, const std::vector<Arrival>& arrivals, std::size_t most)
      : fleet_{fleet}, total_{arrivals.size()}, most_{most}, source_{arrivals, fleet} {
    requests_.reserve(arrivals.size());
    if (fleet.prompts) add(*fleet.prompts, true);
    first_ = engines_.size();
    add(fleet.engines, false);
    check_room(engines_.front(), arrivals);  // each kind's engines are alike
    check_room(engines_[first_], arrivals);
    is_by_load_ = fleet.engines.serving.router == Router::LeastLoaded;
    for (std::size_t index = 0; is_by_load_ && index < engines_.size(); ++index) {
      for (std::size_t group = 0; group < engines_[index].groups.size(); ++group) {
        loads_of(index).emplace(0, place_of(index, group));
      }
    }
  }

  std::vector<Served> served() {
    while (done_ < total_) {
      const std::int64_t now_ns = next_ns();
      while (!wakes_.empty() && wakes_.begin()->first <= now_ns) {
        const std::size_t index = wakes_.begin()->second;
        wakes_.erase(wakes_.begin());
        finish(index, now_ns);
      }
      while (source_.has_next() && source_.next_ns() <= now_ns) {
        requests_.push_back(source_.take());
        give(requests_.size() - 1, 0, fleet_.prompts ? first_ : engines_.size());
      }
      while (!handed_.empty() && handed_.top().first <= now_ns) {
        give(handed_.top().second, first_, engines_.size());
        handed_.pop();
      }
      for (const std::size_t index : touched_) start(index, now_ns);
      touched_.clear();
    }
    return told();
  }

 private:
  void add(const Engines& kind, bool only_prompts) {
    for (std::int64_t i = 0; i < kind.serving.replicas; ++i) {
      Engine& engine = engines_.emplace_back();
      engine.kind = &kind;
      for (std::int64_t group = 0; group < kind.serving.layout.data; ++group) {
        engine.groups.emplace_back(kind.serving, kind.blocks, requests_, only_prompts);
      }
      engine.free_ns.resize(static_cast<std::size_t>(kind.serving.layout.pipeline));
      engine.served.blocks = kind.blocks * kind.serving.layout.data;
    }
  }

  void check_room(const Engine& engine, const std::vector<Arrival>& arrivals) const {
    const Scheduler& group = engine.groups.front();
    const std::int64_t blocks = engine.kind->blocks;
    for (const Arrival& one : arrivals) {
      const std::int64_t needed = group.blocks_of(one.prompt + one.output);
      if (needed <= blocks) continue;
      throw UsageError{
          fmt::format("a request of {} tokens needs {} blocks of the cache, and there are {}",
                      one.prompt + one.output, needed, blocks)};
    }
  }

  std::int64_t next_ns() const {
    std::int64_t next = std::numeric_limits<std::int64_t>::max();
    if (source_.has_next()) next = source_.next_ns();
    if (!wakes_.empty()) next = std::min(next, wakes_.begin()->first);
    if (!handed_.empty()) next = std::min(next, handed_.top().first);
    FORETRACE_CHECK(next < std::numeric_limits<std::int64_t>::max(), "a request is on its way");
    return next;
  }

  /// Of the engines of this one's kind, the first, and the one behind the last.
  std::pair<std::size_t, std::size_t> kind_of(std::size_t index) const {
    return index < first_ ? std::pair{std::size_t{0}, first_} : std::pair{first_, engines_.size()};
  }
  std::size_t place_of(std::size_t index, std::size_t group) const {
    const auto [begin, end] = kind_of(index);
    return index - begin + group * (end - begin);
  }
  /// Requests of each group of that kind, and its place; those with few of them first.
  std::set<std::pair<std::size_t, std::size_t>>& loads_of(std::size_t index) {
    return loads_[index < first_ ? 0 : 1];
  }
  template <class Change>
  void change_load(std::size_t index, std::size_t group, const Change& change) {
    const Scheduler& changed = engines_[index].groups[group];
    const std::size_t before = load_of(changed);
    change();
    if (!is_by_load_ || load_of(changed) == before) return;
    const std::size_t place = place_of(index, group);
    loads_of(index).erase({before, place});
    loads_of(index).emplace(load_of(changed), place);
  }

  /// To one of the engines `begin` to `end`, and one of its groups.
  void give(std::size_t request, std::size_t begin, std::size_t end) {
    const std::size_t groups = engines_[begin].groups.size();
    const std::size_t places = (end - begin) * groups;
    std::size_t place = (begin == 0 ? given_++ : handed_on_++) % places;
    const auto group_at = [&](std::size_t at) -> Scheduler& {
      return engines_[begin + at % (end - begin)].groups[at / (end - begin)];
    };
    if (is_by_load_) {  // the one whose turn it is, or the first of those that have fewest
      const auto least = loads_of(begin).begin();
      if (least->first < load_of(group_at(place))) place = least->second;
    }
    const std::size_t index = begin + place % (end - begin);
    Scheduler& group = group_at(place);
    change_load(index, place / (end - begin),
                [&] { group.add(static_cast<std::uint32_t>(request)); });
    touched_.insert(index);
  }

  void note_changes(const Scheduler& group, const std::vector<Share>& shares, std::int64_t now_ns) {
    for (const std::uint32_t id : group.victims()) requests_[id].preempted_ns.push_back(now_ns);
    for (const Share& share : shares) {
      Request& request = requests_[share.request];
      if (request.admitted_ns.size() == request.preempted_ns.size()) {
        request.admitted_ns.push_back(now_ns);
      }
    }
  }

  /// Iterations follow each other through the stages; none overtakes another.
  void start(std::size_t index, std::int64_t now_ns) {
    Engine& engine = engines_[index];
    if (engine.running.size() == engine.free_ns.size()) return;
    if (engine.free_ns.front() > now_ns) return;
    Iteration iteration{};
    double seconds = 0, of_a_stage = 0;
    Engine::Running made;
    for (Scheduler& group : engine.groups) {
      const auto& shares =
          made.shares.emplace_back(group.is_busy() ? group.next() : std::vector<Share>{});
      note_changes(group, shares, now_ns);
      if (shares.empty()) continue;
      const Batch batch = batch_of(shares, requests_);
      seconds = std::max(seconds, engine.kind->seconds_of(batch));
      if (engine.free_ns.size() > 1) {
        of_a_stage = std::max(of_a_stage, engine.kind->stage_seconds_of(batch));
      }
      iteration.batch.add(batch);
      iteration.running += static_cast<std::int64_t>(group.running());
      iteration.waiting += static_cast<std::int64_t>(group.waiting());
      iteration.blocks += group.used_blocks();
    }
    if (iteration.batch.tokens() == 0) return;
    std::int64_t at_ns = now_ns;
    for (std::size_t stage = 0; stage < engine.free_ns.size(); ++stage) {
      const bool is_last = stage + 1 == engine.free_ns.size();
      iteration.begin_ns = std::max(at_ns, engine.free_ns[stage]);
      at_ns = iteration.begin_ns + nanoseconds(is_last ? seconds : of_a_stage);
      engine.free_ns[stage] = at_ns;
    }
    iteration.end_ns = made.end_ns = at_ns;
    if (engine.served.iterations.size() == most_) {
      throw UsageError{
          fmt::format("more than {} iterations of the engine: too long to be simulated\n"
                      "  hint: fewer requests, shorter outputs, or more requests at the same time "
                      "(max_requests)",
                      most_)};
    }
    engine.served.iterations.push_back(iteration);
    engine.running.push_back(std::move(made));
    wakes_.emplace(engine.free_ns.front(), index);
    wakes_.emplace(at_ns, index);
  }

  /// Iterations of an engine that have ended by now.
  void finish(std::size_t index, std::int64_t now_ns) {
    Engine& engine = engines_[index];
    touched_.insert(index);
    while (!engine.running.empty() && engine.running.front().end_ns <= now_ns) {
      const Engine::Running ended = std::move(engine.running.front());
      engine.running.pop_front();
      for (std::size_t i = 0; i < engine.groups.size(); ++i) {
        std::vector<std::uint32_t> left;
        change_load(index, i, [&] { left = engine.groups[i].finish(ended.shares[i], now_ns); });
        leave(engine, left, now_ns);
      }
    }
  }

  void leave(Engine& engine, const std::vector<std::uint32_t>& left, std::int64_t now_ns) {
    for (const std::uint32_t id : left) {
      const Request& request = requests_[id];
      if (request.generated < request.output) {
        handed_.emplace(now_ns + nanoseconds(fleet_.transfer_seconds(request.computed)), id);
        continue;
      }
      engine.ended.push_back(id);
      ++done_;
      source_.ended(now_ns);
    }
  }

  std::vector<Served> told() {
    std::vector<Served> all;
    for (Engine& engine : engines_) {
      std::ranges::sort(engine.ended);
      for (const std::uint32_t id : engine.ended) {
        engine.served.requests.push_back(std::move(requests_[id]));
      }
      for (const Scheduler& group : engine.groups) {
        engine.served.preemptions += group.preemptions();
      }
      all.push_back(std::move(engine.served));
    }
    return all;
  }

  using Moment = std::pair<std::int64_t, std::size_t>;  // nanoseconds, an engine or a request

  const Fleet& fleet_;
  std::size_t total_, most_, done_ = 0, first_ = 0, given_ = 0, handed_on_ = 0;
  Source source_;
  std::vector<Request> requests_;
  std::vector<Engine> engines_;
  bool is_by_load_ = false;
  std::array<std::set<std::pair<std::size_t, std::size_t>>, 2> loads_;
  std::set<Moment> wakes_;  ///< when an iteration ends, or leaves the first stage
  std::set<std::size_t> touched_;
  std::priority_queue<Moment, std::vector<Moment>, std::greater<>> handed_;
};

}  // namespace

std::vector<Served> serve(const Fleet& fleet, const std::vector<Arrival>& arrivals,
                          std::size_t most) {
  return Run{fleet, arrivals, most}.served();
}

}  // namespace foretrace::serving
