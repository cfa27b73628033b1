#include "sim/applications/serving/scheduler.h"

#include <algorithm>

namespace foretrace::serving {

std::int64_t Scheduler::blocks_of(std::int64_t tokens) const {
  const std::int64_t block = serving_.engine.block;
  return (tokens + block - 1) / block;
}

bool Scheduler::takes(Request& request, std::int64_t tokens) {
  const std::int64_t more = blocks_of(request.computed + tokens) - request.blocks;
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

/// The request admitted last computes all of its tokens again.
std::uint32_t Scheduler::preempt() {
  const std::uint32_t victim = running_.back();
  running_.pop_back();
  Request& request = requests_[victim];
  release(request);
  request.computed = 0;
  ++request.preempted;
  ++preemptions_;
  victims_.push_back(victim);
  waiting_.push_front(victim);
  return victim;
}

/// Requests that run, in the order in which they were admitted. Whether one was preempted.
bool Scheduler::run_on(std::vector<Share>& shares, std::int64_t& budget) {
  bool preempted = false;
  for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
    const std::uint32_t id = running_[i];
    std::int64_t tokens = std::min(requests_[id].missing(), budget);
    while (tokens > 0 && !takes(requests_[id], tokens)) {
      preempted = true;
      if (preempt() == id) tokens = 0;
    }
    if (tokens == 0) break;
    shares.push_back({id, tokens});
    budget -= tokens;
  }
  return preempted;
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
  std::vector<Share> shares;
  std::int64_t budget = serving_.engine.max_batched_tokens;
  // SGLang computes prompts in iterations of their own, and those first.
  const bool apart = serving_.engine.kind == EngineKind::Sglang;
  if (apart) {
    for (const std::uint32_t id : running_) {
      if (requests_[id].missing() < 2 || budget == 0) continue;
      const std::int64_t tokens = std::min(requests_[id].missing(), budget);
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
    request.computed += tokens;
    if (request.missing() > 0) continue;
    ++request.generated;
    request.token_ns.push_back(now_ns);
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
    const std::int64_t cached = requests[id].computed;
    if (tokens == 1) {
      ++batch.decodes;
      batch.decode_keys += cached + 1;
      batch.longest = std::max(batch.longest, cached + 1);
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
