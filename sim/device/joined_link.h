// One link for those of many GPUs that nothing takes apart: every flow through one of them goes
// through all of them, so only the narrowest counts. SimGrid's work for a flow grows with the
// square of its links.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "sim/engine/engine.h"

namespace foretrace::sim {

class JoinedLink {
 public:
  /// `link` is as wide as each of them is at first.
  JoinedLink(LinkId link, Bandwidth width) : link_{link}, now_{width}, width_{width} {}

  LinkId link() const { return link_; }
  Bandwidth width() const { return now_; }
  /// One more of them: its number.
  std::size_t add_member() {
    members_.push_back(widths_.insert(width_));
    return members_.size() - 1;
  }
  /// From now on, of one of them.
  void set_bandwidth(Engine& engine, std::size_t member, Bandwidth bandwidth) {
    widths_.erase(members_[member]);
    members_[member] = widths_.insert(bandwidth);
    if (*widths_.begin() == now_) return;
    now_ = *widths_.begin();
    engine.set_bandwidth(link_, now_);
  }

 private:
  using Widths = std::multiset<Bandwidth>;
  LinkId link_;
  Bandwidth now_, width_;
  Widths widths_;
  std::vector<Widths::iterator> members_;
};

}  // namespace foretrace::sim
