#include "sim/applications/serving/scheduler.h"

#include <algorithm>
#include <cmath>

#include "scenarios/serving/random_numbers.h"

namespace foretrace::serving {
namespace {

constexpr std::uint64_t kGuesses = std::uint64_t{1} << 63U;  // streams of the traffic are below

}  // namespace

std::int64_t Scheduler::blocks_of(std::int64_t tokens) const {
  const std::int64_t block = serving_.engine.block;
  return (tokens + block - 1) / block;
}

bool Scheduler::takes(Request& request, std::int64_t tokens) {
  const std::int64_t more =
      blocks_of(request.computed + request.under_way + tokens) - request.blocks;
  if (more > free_) return false;
  if (more > 0) {
    free_ -= more;
    request.blocks += more;
  }
  return true;
}

void Scheduler::release(Request& request) {
  free_ += request.blocks;
  request.blocks = 0;
}

/// Tokens that a request would compute next; one that decodes has guesses, but none beyond its end.
std::int64_t Scheduler::wanted(const Request& request) const {
  const std::int64_t left = request.left();
  if (left != 1 || request.generated == 0) return left;
  return 1 + std::min(serving_.engine.guesses(), request.output - request.generated - 1);
}

/// Of the guesses that an iteration checked, those before the first wrong one. Each request has
/// its own random numbers.
std::int64_t Scheduler::accepted(const Request& request, std::int64_t guesses) const {
  if (guesses == 0) return 0;
  constexpr double kMillion = 1e6;
  const double each = static_cast<double>(serving_.engine.speculative->acceptance_ppm) / kMillion;
  const auto stream =
      static_cast<std::uint64_t>(request.id) << 32U | static_cast<std::uint64_t>(request.generated);
  RandomNumbers random{serving_.traffic.seed, kGuesses + stream};
  const double drawn = std::ldexp(static_cast<double>(random.next() >> 11U), -53);
  std::int64_t count = 0;
  for (double right = each; count < guesses && drawn < right; right *= each) ++count;
  return count;
}

/// The request admitted last, none of those before `first`, computes all of its tokens again. None
/// is taken out of an iteration that is under way.
std::optional<std::uint32_t> Scheduler::preempt(std::size_t first) {
  std::size_t last = running_.size();
  while (last > first && requests_[running_[last - 1]].under_way > 0) --last;
  if (last == first) return {};
  const std::uint32_t victim = running_[last - 1];
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(last - 1));
  Request& request = requests_[victim];
  release(request);
  request.computed = 0;
  ++request.preempted;
  ++preemptions_;
  victims_.push_back(victim);
  waiting_.push_front(victim);
  return victim;
}

/// Requests that run, in the order in which they were admitted. Whether blocks ran out.
bool Scheduler::run_on(std::vector<Share>& shares, std::int64_t& budget) {
  bool ran_out = false;
  for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
    const std::uint32_t id = running_[i];
    std::int64_t tokens = std::min(wanted(requests_[id]), budget);
    if (tokens <= 0) continue;  // its token is under way
    while (tokens > 0 && !takes(requests_[id], tokens)) {
      const std::optional<std::uint32_t> victim = preempt(i);
      ran_out = true;
      if (victim.value_or(id) == id) tokens = 0;
    }
    if (tokens == 0) break;
    shares.push_back({id, tokens});
    budget -= tokens;
  }
  return ran_out;
}

void Scheduler::admit(std::vector<Share>& shares, std::int64_t& budget) {
  const auto most = static_cast<std::size_t>(serving_.engine.max_requests);
  while (!waiting_.empty() && budget > 0 && running_.size() < most) {
    Request& request = requests_[waiting_.front()];
    if (request.computed == 0) {
      request.computed = std::min(request.prompt * serving_.prefix_ppm / 1'000'000,
                                  request.prompt - 1);  // found in the cache
    }
    if (request.missing() > budget && !serving_.engine.chunked_prefill) break;
    const std::int64_t tokens = std::min(request.missing(), budget);
    if (!takes(request, tokens)) break;
    running_.push_back(waiting_.front());
    waiting_.pop_front();
    shares.push_back({running_.back(), tokens});
    budget -= tokens;
  }
}

std::vector<Share> Scheduler::next() {
  victims_.clear();
  std::vector<Share> shares = chosen();
  for (const auto& [id, tokens] : shares) requests_[id].under_way += tokens;
  return shares;
}

std::vector<Share> Scheduler::chosen() {
  std::vector<Share> shares;
  std::int64_t budget = serving_.engine.max_batched_tokens;
  // SGLang computes prompts in iterations of their own, and those first.
  const bool apart = serving_.engine.kind == EngineKind::Sglang;
  if (apart) {
    for (const std::uint32_t id : running_) {
      if (requests_[id].left() < 2 || budget == 0) continue;
      const std::int64_t tokens = std::min(requests_[id].left(), budget);
      if (!takes(requests_[id], tokens)) continue;
      shares.push_back({id, tokens});
      budget -= tokens;
    }
    admit(shares, budget);
    if (!shares.empty()) return shares;
  }
  if (!run_on(shares, budget) && !apart) admit(shares, budget);
  return shares;
}

std::vector<std::uint32_t> Scheduler::finish(const std::vector<Share>& shares,
                                             std::int64_t now_ns) {
  std::vector<std::uint32_t> leave;
  for (const auto& [id, tokens] : shares) {
    Request& request = requests_[id];
    const bool decodes = request.missing() == 1;
    const std::int64_t more = decodes ? accepted(request, tokens - 1) : 0;
    request.under_way -= tokens;
    request.computed += decodes ? 1 + more : tokens;
    if (request.missing() > 0) continue;
    request.generated += 1 + more;
    request.token_ns.insert(request.token_ns.end(), static_cast<std::size_t>(1 + more), now_ns);
    if (request.generated < request.output && !only_prompts_) continue;
    leave.push_back(id);
    release(request);
  }
  if (!leave.empty()) {
    std::erase_if(running_, [this](std::uint32_t id) { return requests_[id].blocks == 0; });
  }
  return leave;
}

Batch batch_of(const std::vector<Share>& shares, const std::vector<Request>& requests) {
  Batch batch;
  for (const auto& [id, tokens] : shares) {
    const Request& request = requests[id];
    const std::int64_t cached = request.computed + request.under_way - tokens;
    if (tokens == 1 || request.prompt + request.generated - cached == 1) {
      ++batch.decodes;
      batch.guesses += tokens - 1;
      batch.decode_keys += cached + tokens;
      batch.longest = std::max(batch.longest, cached + tokens);
      continue;
    }
    ++batch.chunks;
    batch.chunk_tokens += tokens;
    batch.chunk_keys += cached + tokens;
    batch.chunk_pairs += tokens * cached + tokens * (tokens + 1) / 2;
  }
  return batch;
}

}  // namespace foretrace::serving
