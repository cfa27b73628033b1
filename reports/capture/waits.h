// What was started so far and when it ended: from that follows for whom something can have waited,
// and for whom it cannot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <vector>

#include "reports/capture/capture.h"

namespace foretrace::capture {

/// Work that the scenario has.
struct Launched {
  std::int64_t begin = 0, end = 0;        ///< captured
  std::int64_t lane = 0;                  ///< stream
  std::size_t line = 0;                   ///< of the scenario's operations
  std::optional<std::size_t> collective;  ///< its number: one that the language has
};

class InFlight {
 public:
  void add(const Launched& work);
  /// What an earlier step left: it counts among what is queued, nobody can wait for it.
  void add_earlier(std::int64_t end) { ends_.push(end); }

  /// The last that was started on a stream; null: none.
  const Launched* last_on(std::int64_t lane) const;
  /// What ended last of that which ended within [from, until] on other streams; null: nothing.
  const Launched* ended_within(std::int64_t from, std::int64_t until,
                               std::optional<std::int64_t> but_lane = {}) const;
  /// Whether all that was started had ended.
  bool all_ended(std::int64_t at) const { return latest_end_ <= at; }
  /// How much was queued or running; `at` never goes back.
  std::size_t queued(std::int64_t at);

 private:
  std::vector<Launched> all_;
  std::multimap<std::int64_t, std::size_t> by_end_;
  std::map<std::int64_t, std::size_t> last_;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> ends_;
  std::int64_t latest_end_ = std::numeric_limits<std::int64_t>::min();
};

/// By event: how many kernels, copies and fills of other streams ran at once with it, itself
/// included; those of NCCL do not count.
std::vector<std::uint32_t> ran_at_once(const Capture& capture, const Process& process);

}  // namespace foretrace::capture
