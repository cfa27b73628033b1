// Copy engines: one for each kind of copy, one for all of them, or none.
#include "sim/device/device.h"

namespace foretrace::sim {

Device::CopyEngine& Device::copy_engine(std::uint32_t kind) {
  const std::size_t engine = limits_.copy_engines <= 1 ? 0 : kind;
  if (engine >= copy_engines_.size()) copy_engines_.resize(engine + 1);
  return copy_engines_[engine];
}

void Device::acquire_copy_engine(std::uint32_t kind, CopyOwner& owner) {
  if (limits_.copy_engines == 0) {
    occupy(exclusive_copies_.emplace_back(owner), limits_.sms, 0);
    return;
  }
  CopyEngine& which = copy_engine(kind);
  if (which.busy != nullptr) {
    which.waiting.push_back(&owner);
    return;
  }
  which.busy = &owner;
  owner.copy_engine_free();
}

void Device::release_copy_engine(std::uint32_t kind) {
  if (limits_.copy_engines == 0) {
    release(exclusive_copies_.front());  // one at a time, in order of arrival
    exclusive_copies_.pop_front();
    return;
  }
  CopyEngine& which = copy_engine(kind);
  which.busy = nullptr;
  if (which.waiting.empty()) return;
  which.busy = which.waiting.front();
  which.waiting.pop_front();
  which.busy->copy_engine_free();
}

}  // namespace foretrace::sim
