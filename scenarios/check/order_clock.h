// So many entries of each lane have ended: what is known at one moment. Thousands of ranks that met
// know the same but for a few lanes of their own, so clocks share what they have in common: a
// program of N ranks takes N entries where each for itself would be N^2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace foretrace {

class OrderClock {
 public:
  /// 0 of a lane of which nothing is known.
  std::uint32_t operator[](std::size_t lane) const {
    const std::size_t at = place_of(lane);
    if (at < own_.size() && own_[at].lane == lane) return own_[at].position;
    return in_common(lane);
  }
  /// All lanes from here on are 0.
  std::size_t size() const;
  /// Of this clock alone.
  std::size_t own_entries() const { return own_.size(); }

  /// The lane is at least so far.
  void raise(std::uint32_t lane, std::uint32_t position);

  /// Entries that were looked at, and that were made for several clocks to share.
  struct Work {
    std::size_t joined = 0, made = 0;
  };
  /// Each lane is as far as the further of the two.
  Work join(const OrderClock& from);

 private:
  using Common = std::vector<std::uint32_t>;
  struct Own {
    std::uint32_t lane, position;
  };
  std::size_t place_of(std::size_t lane) const;
  std::uint32_t in_common(std::size_t lane) const {
    return common_ != nullptr && lane < common_->size() ? (*common_)[lane] : 0;
  }
  void drop_known();
  Work join_common(const std::shared_ptr<Common>& other);
  Work share_own();
  Common& common_of_own();

  std::shared_ptr<Common> common_;    ///< never changed while another clock has it
  std::shared_ptr<Common> included_;  ///< `common_` has all of it
  std::vector<Own> own_;              ///< beyond `common_`, ascending
};

}  // namespace foretrace
