#include "sim/applications/serving/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/base/text/errors.h"

namespace foretrace::serving {
namespace {

/// Requests come in the order of the traffic; those of a closed loop when one has ended.
class Source {
 public:
  explicit Source(const std::vector<Arrival>& arrivals) : arrivals_{arrivals} {
    while (known_ < arrivals.size() && arrivals[known_].at_ns) ++known_;
    for (std::size_t i = 0; i < known_; ++i) times_.push_back(*arrivals[i].at_ns);
  }
  bool has_next() const { return next_ < times_.size(); }
  std::int64_t next_ns() const { return times_[next_]; }
  Request take() {
    Request request;
    request.arrival_ns = times_[next_];
    request.prompt = arrivals_[next_].prompt;
    request.output = arrivals_[next_].output;
    ++next_;
    return request;
  }
  void ended(std::int64_t now_ns) {
    if (times_.size() < arrivals_.size()) times_.push_back(now_ns);
  }

 private:
  const std::vector<Arrival>& arrivals_;
  std::vector<std::int64_t> times_;
  std::size_t known_ = 0, next_ = 0;
};

void check_room(const Scheduler& scheduler, const std::vector<Arrival>& arrivals,
                std::int64_t blocks) {
  for (const Arrival& one : arrivals) {
    const std::int64_t needed = scheduler.blocks_of(one.prompt + one.output);
    if (needed <= blocks) continue;
    throw UsageError{
        fmt::format("a request of {} tokens needs {} blocks of the cache, and there are {}",
                    one.prompt + one.output, needed, blocks)};
  }
}

}  // namespace

Served serve(const Serving& serving, const std::vector<Arrival>& arrivals, std::int64_t blocks,
             const std::function<double(const Batch&)>& seconds_of, std::size_t most) {
  Served served;
  served.blocks = blocks;
  served.requests.reserve(arrivals.size());
  Scheduler scheduler{serving, blocks, served.requests};
  check_room(scheduler, arrivals, blocks);
  Source source{arrivals};
  std::int64_t now_ns = 0;
  for (std::size_t done = 0; done < arrivals.size();) {
    while (source.has_next() && source.next_ns() <= now_ns) {
      served.requests.push_back(source.take());
      scheduler.add(static_cast<std::uint32_t>(served.requests.size() - 1));
    }
    if (!scheduler.is_busy()) {
      now_ns = source.next_ns();
      continue;
    }
    const std::vector<Share> shares = scheduler.next();
    FORETRACE_CHECK(!shares.empty(), "a request that the cache has room for runs");
    for (const std::uint32_t id : scheduler.victims()) {
      served.requests[id].preempted_ns.push_back(now_ns);
    }
    for (const Share& share : shares) {
      Request& request = served.requests[share.request];
      if (request.admitted_ns.size() == request.preempted_ns.size()) {
        request.admitted_ns.push_back(now_ns);
      }
    }
    Iteration iteration{.begin_ns = now_ns, .batch = batch_of(shares, served.requests)};
    now_ns += std::max<std::int64_t>(1, std::llround(seconds_of(iteration.batch) * 1e9));
    iteration.end_ns = now_ns;
    iteration.running = static_cast<std::int64_t>(scheduler.running());
    iteration.waiting = static_cast<std::int64_t>(scheduler.waiting());
    iteration.blocks = scheduler.used_blocks();
    if (served.iterations.size() == most) {
      throw UsageError{
          fmt::format("more than {} iterations of the engine: too long to be simulated\n"
                      "  hint: fewer requests, shorter outputs, or more requests at the same time "
                      "(max_requests)",
                      most)};
    }
    served.iterations.push_back(iteration);
    const std::size_t ended = scheduler.finish(shares, now_ns);
    done += ended;
    for (std::size_t i = 0; i < ended; ++i) source.ended(now_ns);
  }
  served.preemptions = scheduler.preemptions();
  return served;
}

std::vector<Arrival> of_replica(const Serving& serving, const std::vector<Arrival>& arrivals,
                                std::int64_t replica) {
  std::vector<Arrival> own;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    if (static_cast<std::int64_t>(i) % serving.replicas == replica) own.push_back(arrivals[i]);
  }
  return own;
}

}  // namespace foretrace::serving
