// Who recorded an event when a thread that captures graphs waits for it: a capture, something
// outside of one, or nobody yet in this pass, which counts as complete.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "scenarios/program/program.h"

namespace foretrace {

/// Follows one thread of one process at a time. Another thread's record may come before or behind:
/// where it decides, the program is taken unless it is refused either way.
class EventRecords {
 public:
  explicit EventRecords(const Program& program);

  /// Records, or waits for, an event of a family that some capture names.
  bool concern(const Op& op) const;

  void follow(const HostThread& thread, std::uint32_t process);
  void add_captured(std::uint32_t event, const Op& record) { last_[event] = &record; }
  void add_outside(std::uint32_t event) { last_[event] = nullptr; }

  /// The last record, if it was captured and no other thread may have recorded it anew.
  const Op* captured(std::uint32_t event);
  /// The last record was outside of a capture, or another thread's can be.
  bool is_outside(std::uint32_t event);

 private:
  struct Recorded {
    std::set<std::uint32_t> events;
    bool is_all = true;  ///< the walk came to its end
  };

  const Recorded& recorded_by(const HostThread& thread);
  bool others_record(std::uint32_t event);
  bool others_may_record(std::uint32_t event);
  template <class Test>
  bool any_other(const Test& test);

  const Program& program_;
  std::set<EventId> families_;           ///< the first event of each that a capture names
  std::set<const Block*> with_records_;  ///< of their events
  std::uint64_t left_;                   ///< operations of other threads to look at
  std::map<std::pair<const HostThread*, std::uint32_t>, Recorded> recorded_;
  const HostThread* thread_ = nullptr;
  std::uint32_t process_ = 0;
  std::map<std::uint32_t, const Op*> last_;  ///< null: outside of a capture
};

}  // namespace foretrace
