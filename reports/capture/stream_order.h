// Which work waits for which of other streams: as CUPTI says it where it does, else from what was
// called and when it ran. A wait that the captured times contradict is not written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reports/capture/process_ops.h"
#include "reports/capture/script.h"
#include "reports/capture/waits.h"

namespace foretrace::capture {

inline constexpr std::int64_t kBlockedNs = 10'000;  ///< work that begins so soon behind waited

/// What the writers of one process's operations share.
struct Writing {
  Writing(const Process& of, const ScenarioOptions& as) : process{of}, options{as} {}

  const Process& process;
  const ScenarioOptions& options;
  InFlight in_flight;
  Script script;
  ProcessOps out;
  std::map<std::int64_t, std::int64_t> ends;     ///< of the last kernel, copy or fill by stream
  std::map<std::int64_t, std::int64_t> awaited;  ///< by stream: when what it waits for had ended
  std::optional<std::int64_t> last_stream;       ///< of the last work that is no collective
  std::int64_t owed = 0;                         ///< what the written calls take, in ns

  /// "s7", which is declared.
  std::string stream_of(std::int64_t lane);
  void awaits(std::int64_t lane, std::int64_t end) {
    std::int64_t& until = awaited.try_emplace(lane, end).first->second;
    until = std::max(until, end);
  }
  void guess(const std::string& what) { ++out.guesses[what]; }
};

class StreamOrder {
 public:
  explicit StreamOrder(Writing& writing) : w_{writing} {}

  void has_collectives(std::int64_t lane) { lanes_of_collectives_.insert(lane); }
  void remember_record(const Event& call, const std::string& name);
  /// A call that makes a stream wait.
  void add_wait(const Event& call);
  /// Before `work` is written: what it waits for. `ready`: when its call and its stream were.
  void order(const Event& call, const Event& work, std::int64_t ready);
  /// The stream whose work a collective waits for: the one that was used before it, unless it began
  /// before that had ended. Then its own, which has nothing else.
  std::int64_t source_of(const Event& collective);
  void add_collective(std::size_t number, std::int64_t end, std::uint64_t external);
  /// An event behind `work` on its stream; its index.
  std::size_t record_behind(const Launched& work);

 private:
  void wait_as_told(const Event& call);
  void wait_event(const Launched& work, std::int64_t lane);
  bool wait_for_collective(const Event& work);
  void wait_for_work(std::size_t number, std::int64_t end, std::int64_t lane);
  const Launched* used_before(const Event& work);

  struct Pending {
    std::size_t number;
    std::int64_t end;
  };

  Writing& w_;
  std::vector<const Event*> waits_;                    ///< since the last launch
  std::map<std::size_t, std::size_t> records_;         ///< events by the line they stand behind
  std::map<std::uint64_t, std::size_t> recorded_;      ///< lines by a record's correlation
  std::map<std::uint64_t, std::size_t> records_told_;  ///< events by a record's correlation
  std::set<std::int64_t> lanes_of_collectives_;
  std::set<std::pair<std::size_t, std::string>> waited_;
  std::deque<Pending> pending_;
  std::optional<std::int64_t> source_of_collective_;
  std::uint64_t last_collective_ = 0;
};

}  // namespace foretrace::capture
