// The driver's thread that runs what host_func queues: one function at a time in a process, in the
// order in which their streams reach them.
#pragma once

#include <deque>
#include <string>

#include "sim/engine.h"
#include "sim/semaphore.h"

namespace foretrace::sim {

class HostFunctions final : Handler, Waiter {
 public:
  explicit HostFunctions(Engine& engine) : engine_{engine} {}
  HostFunctions(const HostFunctions&) = delete;
  HostFunctions& operator=(const HostFunctions&) = delete;

  class Owner {
   public:
    virtual void host_function_began() = 0;
    virtual void host_function_ended() = 0;

   protected:
    ~Owner() = default;
  };
  /// From now on, or when the functions before have returned. `work` lives until it has ended.
  void run(const HostFuncWork& work, Owner& owner);

 private:
  struct Job {
    const HostFuncWork* work;
    Owner* owner;
  };
  void fire(std::uint64_t what) override;
  void wake() override;
  void begin();

  Engine& engine_;
  std::deque<Job> jobs_;  ///< the first one runs
};

}  // namespace foretrace::sim
