// The buffers that a program has registered with its communicators, for whom NCCL keeps a handle.
#pragma once

#include <nccl.h>

#include <functional>
#include <mutex>
#include <vector>

#include "hw/cuda/buffer.h"
#include "scenarios/program/ids.h"

namespace foretrace::hw {

/// Of one process; its host threads may register at once.
class Registrations {
 public:
  /// ncclCommRegister of all of `memory`. Throws where it holds none.
  void add(CommId id, ncclComm_t comm, BufferId buffer, const Buffer& memory);
  /// ncclCommDeregister of the latest registration of `buffer`. Throws where there is none.
  void remove(CommId id, ncclComm_t comm, BufferId buffer);
  /// What is left at the end of a pass.
  void remove_all(const std::function<ncclComm_t(CommId)>& comm_of);
  /// The communicator is about to go, and its registrations with it.
  void forget(CommId id);

 private:
  struct Registration {
    CommId comm;
    BufferId buffer;
    void* handle;
  };
  std::mutex mutex_;
  std::vector<Registration> all_;
};

}  // namespace foretrace::hw
