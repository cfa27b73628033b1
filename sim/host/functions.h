// The driver's thread that runs what host_func queues: one function at a time in a process, in the
// order in which their streams reach them.
#pragma once

#include <string>

#include "models/machine/machine.h"
#include "sim/engine/engine.h"
#include "sim/engine/queue.h"
#include "sim/host/semaphore.h"

namespace foretrace::sim {

class HostFunctions final : Handler, Waiter {
 public:
  HostFunctions(Engine& engine, const Machine& machine) : engine_{engine}, machine_{machine} {}
  HostFunctions(const HostFunctions&) = delete;
  HostFunctions& operator=(const HostFunctions&) = delete;

  class Owner {
   public:
    virtual void host_function_began() = 0;
    virtual void host_function_ended() = 0;

   protected:
    ~Owner() = default;
  };
  /// The stream has reached the function, which was queued at `queued`; `follows` another one
  /// directly. It begins when the driver notices, and after those before. `work` lives until its
  /// end.
  void run(const HostFuncWork& work, TimePoint queued, bool follows, Owner& owner);

 private:
  enum Event : std::uint64_t { kNoticed, kReturned };
  struct Job {
    const HostFuncWork* work;
    Owner* owner;
    TimePoint noticed;
  };
  void next();
  void fire(std::uint64_t what) override;
  void wake() override;
  void begin();

  Engine& engine_;
  const Machine& machine_;
  TimePoint last_end_{};
  bool busy_ = false;
  Queue<Job> jobs_;  ///< the first one runs
};

}  // namespace foretrace::sim
