// Which request computes how many tokens in the next iteration: continuous batching over a paged
// cache (scenarios/serving.md has the rules). Pure: no time, no machine.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "scenarios/serving/iteration.h"

namespace foretrace::serving {

struct Request {
  std::int64_t id = 0;  ///< in the order of the traffic, over all engines
  std::int64_t arrival_ns = 0;
  std::int64_t prompt = 1, output = 1;
  std::int64_t generated = 0;
  std::int64_t computed = 0;   ///< tokens whose keys and values are in the cache
  std::int64_t under_way = 0;  ///< tokens that iterations compute which have not ended
  std::int64_t blocks = 0;
  std::int64_t preempted = 0;  ///< times
  std::vector<std::int64_t> token_ns;
  std::vector<std::int64_t> admitted_ns;  ///< once more after each preemption
  std::vector<std::int64_t> preempted_ns;

  std::int64_t missing() const { return prompt + generated - computed; }
  std::int64_t left() const { return missing() - under_way; }
};

/// Tokens that a request computes in an iteration.
struct Share {
  std::uint32_t request = 0;
  std::int64_t tokens = 0;
};

class Scheduler {
 public:
  /// `serving` and `requests` outlive it, these are its to change; `blocks`: of the cache.
  /// `only_prompts`: with its first token a request leaves for another engine.
  Scheduler(const Serving& serving, std::int64_t blocks, std::vector<Request>& requests,
            bool only_prompts = false)
      : serving_{serving},
        free_{blocks},
        all_{blocks},
        requests_{requests},
        only_prompts_{only_prompts} {}

  void add(std::uint32_t request) { waiting_.push_back(request); }
  bool is_busy() const { return !waiting_.empty() || !running_.empty(); }
  /// Of the next iteration; in a pipeline earlier ones may still be under way, whose requests have
  /// their next token in a later one, and their prompts' next chunk in this one.
  std::vector<Share> next();
  /// The iteration's tokens are there. The requests that leave with it.
  std::vector<std::uint32_t> finish(const std::vector<Share>& shares, std::int64_t now_ns);

  std::size_t running() const { return running_.size(); }
  std::size_t waiting() const { return waiting_.size(); }
  std::int64_t used_blocks() const { return all_ - free_; }
  std::int64_t preemptions() const { return preemptions_; }
  /// Those that next() preempted.
  const std::vector<std::uint32_t>& victims() const { return victims_; }
  std::int64_t blocks_of(std::int64_t tokens) const;

 private:
  std::int64_t wanted(const Request& request) const;
  std::int64_t accepted(const Request& request, std::int64_t guesses) const;
  bool takes(Request& request, std::int64_t tokens);
  std::vector<Share> chosen();
  std::optional<std::uint32_t> preempt(std::size_t first);
  bool run_on(std::vector<Share>& shares, std::int64_t& budget);
  void admit(std::vector<Share>& shares, std::int64_t& budget);
  void release(Request& request);

  const Serving& serving_;
  std::int64_t free_, all_;
  std::vector<Request>& requests_;
  bool only_prompts_;
  std::deque<std::uint32_t> waiting_;
  std::vector<std::uint32_t> running_, victims_;
  std::int64_t preemptions_ = 0;
};

/// What the shares are as a batch, once next() has said them.
Batch batch_of(const std::vector<Share>& shares, const std::vector<Request>& requests);

}  // namespace foretrace::serving
