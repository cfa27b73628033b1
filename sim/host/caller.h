// What every call of a host thread needs: where the thread is, what a call costs, how it waits, how
// it queues work on streams.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/cost/copy.h"
#include "models/cost/host.h"
#include "models/cost/kernel.h"
#include "models/cost/stream.h"
#include "sim/world.h"

namespace foretrace::sim {

/// What a call takes, and the detail of its span: its band.
struct Priced {
  Duration time{};
  std::uint32_t detail = 0;
};

class Caller : protected Handler, protected Waiter {
 public:
  Caller(Engine& engine, World& world, Recorder& recorder, const Machine& machine,
         const Program& program, const foretrace::HostThread& declared, std::uint32_t process);
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  World& world() const { return world_; }
  Recorder& recorder() const { return recorder_; }
  const Machine& machine() const { return machine_; }
  const Program& program() const { return program_; }
  Process& process() { return process_; }
  const Process& process() const { return process_; }
  const std::string& name() const { return declared_.name; }
  TimePoint now() const { return engine_.now(); }
  const Execution& execution() const { return current_; }
  Variables variables() const { return variables_; }
  /// What calls are captured in, or null.
  GraphExec* capture() const { return capture_; }
  /// CUDA_LAUNCH_BLOCKING=1
  bool launches_block() const { return launches_block_; }
  /// "stream comm(0) to end", and what that stream is at.
  const std::string& waits_for() const { return waits_for_; }
  const StreamQueue* waits_for_stream() const { return waits_for_stream_; }
  const std::vector<Connection*>& waits_for_connections() const { return connections_; }

  /// `time_of(Reading&)`: a function of models/cost/.
  template <class TimeOf>
  Priced price(const TimeOf& time_of, bool is_first = false) {
    const SpanOf which = is_first ? SpanOf::FirstCall : SpanOf::Call;
    Reading read{machine_};
    const Duration time = time_of(read) + std::exchange(behind_, Duration{0});
    return {time, recorder_.banded(*current_.op, which, {}, time_of)};
  }
  Priced price(const cost::Call& call) {
    const SpanOf which = call.is_first ? SpanOf::FirstCall : SpanOf::Call;
    const auto time_of = [&](Reading& read) { return cost::call_time(read, call); };
    const Duration time = world_.costs().of(call) + std::exchange(behind_, Duration{0});
    return {time, recorder_.banded(*current_.op, which, call, time_of)};
  }
  /// A call that a machine file may not know costs nothing then.
  Priced known_call(Param param) {
    return machine_.has(param) ? price(begin_call(param)) : Priced{};
  }
  /// A call of this kind begins. Once each: it notes what the next one depends on.
  cost::Call begin_call(Param param);
  /// The same, for work on this device.
  cost::Call begin_call(Param param, std::uint32_t device);
  /// The same, for work on this stream: its price has the wait for other threads' calls on it.
  cost::Call begin_call(Param param, const StreamQueue& queue);

  /// The same, for a call that takes from a device's pool or gives back.
  cost::Call begin_call_of_pool(Param param, std::uint32_t device);

  /// The operation took no time.
  void pass() { passed_ = true; }
  /// The call takes so long, then the thread goes on.
  void take(Priced call);
  /// The call takes so long at least, and returns `wake_time` after the last of what it waits for:
  /// then its time is not its own, and has no band.
  void block(Priced call, Duration wake_time, std::string waits_for);
  void block(Priced call, cost::Wait wait, std::string waits_for) {
    Reading read{machine_};
    block(call, cost::wake_time(read, wait), std::move(waits_for));
  }
  void wait_for_stream(StreamQueue& stream);
  /// Another thread holds the device's context: `returned` comes once it may be free. No retry.
  bool waits_for_context(std::uint32_t device);
  void wait_for_connection(Connection* connection);
  bool waits_for_connection() const { return !connections_.empty(); }
  /// Until as many `wake_soon`, the call waits for more than it has named yet.
  void hold() { ++pending_wakes_; }
  void release() { --pending_wakes_; }
  void wake_soon() { engine_.queue().at(engine_.now(), *this, kWake); }
  /// The band of a blocking call's span.
  void set_waiting_detail(std::uint32_t detail) { waiting_detail_ = detail; }

  using Passes = boost::container::small_vector<cost::Pass, 4>;
  /// A kernel or a copy that is queued now goes through so much of these: what is in between
  /// decides what it finds in the level-2 cache. Memory of other devices, or of the host, is not
  /// looked at.
  Passes go_through(std::uint32_t device, std::span<const UsedMemory> memory);

  StreamQueue& stream(const StreamRef& ref) { return stream_at(ref, variables_); }
  StreamQueue& stream_at(const StreamRef& ref, Variables variables);
  const Buffer& buffer(const BufferRef& ref) const;

 protected:
  enum Event : std::uint64_t { kNext, kReturn, kWake };
  void wake() override;
  /// Queues `what`, which the call of so long makes the device see.
  template <class What>
  void push(StreamQueue& stream, Duration call, cost::Entry entry, What what) {
    if (capture_ != nullptr) {
      capture_->capture(stream, std::move(what));
      return;
    }
    stream.called_until(engine_.now() + call);
    Reading read{machine_};
    const TimePoint available = engine_.now() + call + cost::launch_latency(read, entry);
    stream.push({current_, available, 0, 1, std::move(what)});
  }
  bool switches_to(std::uint32_t device);
  bool has_other_threads() const { return process_.in_call_until.size() > 1; }
  /// The call that begins waits for calls of other threads until then.
  void stand_behind(TimePoint until) { behind_ = std::max(behind_, until - engine_.now()); }
  /// Tries the operation again once another thread gives a lock back.
  void look_again(TimePoint until);
  /// Another thread holds the device's context: the operation is to be made again.
  bool context_is_held(std::uint32_t device);
  /// `call` holds the context: it takes longer while others wait for that.
  void hold_context(cost::Call& call, std::uint32_t device);
  bool held_up(StreamQueue& stream);
  void wait_for_entry(StreamQueue& stream, std::uint64_t count, std::string_view what);

  Engine& engine_;
  World& world_;
  Recorder& recorder_;
  const Machine& machine_;
  const Program& program_;
  const foretrace::HostThread& declared_;
  Process& process_;
  std::uint32_t lane_;

  std::vector<std::int64_t> variables_;  ///< process, then loop indices
  Execution current_;
  TimePoint called_{};           ///< when the current call began
  TimePoint earliest_return_{};  ///< of a blocking call
  Duration wake_time_{};
  std::uint32_t pending_wakes_ = 0;
  std::uint32_t waiting_detail_ = 0;  ///< of the span of a blocking call
  bool passed_ = false;               ///< the operation took no time
  bool retry_ = false;                ///< the call was held up (queue full): run it again
  std::string waits_for_;
  const StreamQueue* waits_for_stream_ = nullptr;
  std::vector<Connection*> connections_;  ///< that the current call waits for
  bool launches_block_;
  GraphExec* capture_ = nullptr;
  std::uint32_t device_ = 0;    ///< the thread's current device
  bool waits_to_free_ = false;  ///< in cudaFree, for the device

 private:
  Process::HeldContext* awaited_ = nullptr;  ///< that others hold: it counts this thread
  Duration behind_{};       ///< what the call that begins waits for other threads' calls
  std::vector<bool> made_;  ///< by Param: calls of each kind, in this pass
  std::size_t slot_;        ///< this thread's in Process::in_call_until
};

}  // namespace foretrace::sim
