#include "hw/run/registrations.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "hw/cuda/nccl_check.h"

namespace foretrace::hw {

void Registrations::add(CommId id, ncclComm_t comm, BufferId buffer, const Buffer& memory) {
  if (!memory.holds_memory()) {
    throw std::runtime_error{"buffer " + memory.declared().name +
                             ": nccl_comm_register of memory that is not allocated"};
  }
  void* handle = nullptr;
  nccl_check(ncclCommRegister(comm, memory.data(), memory.bytes(), &handle));
  const std::scoped_lock lock{mutex_};
  all_.push_back({id, buffer, handle});
}

void Registrations::remove(CommId id, ncclComm_t comm, BufferId buffer) {
  void* handle = nullptr;
  {
    const std::scoped_lock lock{mutex_};
    const auto is_it = [&](const Registration& one) {
      return one.comm == id && one.buffer == buffer;
    };
    const auto found = std::find_if(all_.rbegin(), all_.rend(), is_it);
    if (found == all_.rend()) {
      throw std::runtime_error{"nccl_comm_deregister of a buffer that is not registered"};
    }
    handle = found->handle;
    all_.erase(std::next(found).base());
  }
  nccl_check(ncclCommDeregister(comm, handle));
}

void Registrations::remove_all(const std::function<ncclComm_t(CommId)>& comm_of) {
  for (const Registration& one : std::exchange(all_, {})) {
    if (ncclComm_t comm = comm_of(one.comm); comm != nullptr) {
      nccl_check(ncclCommDeregister(comm, one.handle));
    }
  }
}

void Registrations::forget(CommId id) {
  const std::scoped_lock lock{mutex_};
  std::erase_if(all_, [&](const Registration& one) { return one.comm == id; });
}

}  // namespace foretrace::hw
