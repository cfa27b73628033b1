#include "scenarios/check/order_clock.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace foretrace {
namespace {

constexpr std::size_t kMostOwn = 32;

/// Each lane of `all` is as far as that of `part`.
bool includes(const std::vector<std::uint32_t>& all, const std::vector<std::uint32_t>& part) {
  return part.size() <= all.size() &&
         std::equal(part.begin(), part.end(), all.begin(), std::less_equal{});
}

}  // namespace

std::size_t OrderClock::size() const {
  const std::size_t common = common_ == nullptr ? 0 : common_->size();
  return own_.empty() ? common : std::max<std::size_t>(common, own_.back().lane + std::size_t{1});
}

std::size_t OrderClock::place_of(std::size_t lane) const {
  const auto at = std::ranges::lower_bound(own_, lane, {}, &Own::lane);
  return static_cast<std::size_t>(at - own_.begin());
}

void OrderClock::raise(std::uint32_t lane, std::uint32_t position) {
  if (position <= in_common(lane)) return;
  const bool is_alone = common_.use_count() == 1;
  if (is_alone && lane < common_->size() && own_.empty()) {
    (*common_)[lane] = position;
    return;
  }
  const std::size_t at = place_of(lane);
  if (at < own_.size() && own_[at].lane == lane) {
    own_[at].position = std::max(own_[at].position, position);
  } else {
    own_.insert(own_.begin() + static_cast<std::ptrdiff_t>(at), {lane, position});
  }
}

OrderClock::Work OrderClock::join(const OrderClock& from) {
  Work work{1, 0};
  if (from.common_ != nullptr && from.common_ != common_ && from.common_ != included_) {
    const Work of_common = join_common(from.common_);
    work.joined += of_common.joined;
    work.made += of_common.made;
  }
  work.joined += from.own_.size();
  for (const auto& [lane, position] : from.own_) raise(lane, position);
  // Many clocks may have just joined the same one, whose own entries were nearly as many as may be:
  // a few more must not make each of them copy what they have in common.
  const std::size_t most = common_.use_count() > 1 ? 2 * kMostOwn : kMostOwn;
  if (own_.size() > most) {
    const Work of_own = share_own();
    work.joined += of_own.joined;
    work.made += of_own.made;
  }
  return work;
}

void OrderClock::drop_known() {
  std::erase_if(own_, [this](const Own& own) { return own.position <= in_common(own.lane); });
}

OrderClock::Work OrderClock::join_common(const std::shared_ptr<Common>& other) {
  if (common_ == nullptr) {
    common_ = other;
    drop_known();
    return {};
  }
  Work work{other->size(), 0};
  if (includes(*common_, *other)) {
    included_ = other;
  } else if (includes(*other, *common_)) {
    included_ = std::exchange(common_, other);
    drop_known();
  } else {
    work.made = common_of_own().size();
    Common& mine = *common_;
    if (mine.size() < other->size()) mine.resize(other->size());
    std::ranges::transform(*other, mine, mine.begin(),
                           [](std::uint32_t a, std::uint32_t b) { return std::max(a, b); });
    included_ = other;
    drop_known();
  }
  return work;
}

/// To be changed: a copy where others have it, too.
OrderClock::Common& OrderClock::common_of_own() {
  if (common_ == nullptr) {
    common_ = std::make_shared<Common>();
  } else if (common_.use_count() > 1) {
    included_ = common_;
    common_ = std::make_shared<Common>(*common_);
  }
  return *common_;
}

OrderClock::Work OrderClock::share_own() {
  const std::size_t needed = size();
  const bool is_new = common_.use_count() != 1;
  Common& mine = common_of_own();
  if (mine.size() < needed) mine.resize(needed);
  for (const auto& [lane, position] : own_) mine[lane] = std::max(mine[lane], position);
  own_.clear();
  return {is_new ? mine.size() : kMostOwn, is_new ? mine.size() : 0};
}

}  // namespace foretrace
