// One process's part of running a scenario: its objects, its host threads, its watchdog. A pass
// begins in all processes at once and ends when this process's devices are idle.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "hw/execute/host_thread.h"
#include "hw/guard/hang_report.h"
#include "hw/guard/host_messages.h"
#include "hw/guard/watchdog.h"
#include "hw/run/host_barriers.h"
#include "hw/run/objects.h"
#include "hw/run/pass_barrier.h"
#include "hw/run/processes.h"
#include "hw/trace/host_clocks.h"
#include "hw/trace/span_builder.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

/// What to do when the run cannot go on.
struct RunEnd {
  /// The watchdog's: nothing moved for the timeout. Tells and writes down why.
  std::function<void(const ProcessReport&)> hang;
  /// Ends the process, after its communicators were aborted. Does not return; nor do the others.
  std::function<void()> end_hang;
  /// An operation failed (what happened, in words), on whatever thread: the first one of all
  /// processes. Tells and writes it down.
  std::function<void(const std::string&)> failed_operation;
  /// As end_hang, after failed_operation.
  std::function<void()> end_failed;
  /// CUDA, NCCL or the system failed on a host thread of its own.
  std::function<void(const std::string&)> broke;
};

class ProcessRun {
 public:
  ProcessRun(const Program& program, const Processes& processes, int first_ordinal,
             std::chrono::nanoseconds timeout, RunEnd end);
  ~ProcessRun();
  ProcessRun(const ProcessRun&) = delete;
  ProcessRun& operator=(const ProcessRun&) = delete;

  /// Runs what would otherwise be loaded or created at first use: cuBLAS handles and kernels.
  void preload();
  void pass();
  /// A pass under an ActivityTracer.
  TracedPass traced_pass();

  /// Runs `body` under the watchdog, which wants to hear of progress.
  void watched(const std::function<void()>& body);
  void note_progress() { ++passes_; }

  std::vector<RegionTime> region_times() const;  ///< of the last pass
  const std::vector<std::unique_ptr<HostThreadRunner>>& threads() const { return threads_; }
  Objects& objects() { return objects_; }
  HostClocks& clocks() { return clocks_; }
  /// Where everything is now; from any thread.
  ProcessReport report() const;

 private:
  void begin_pass();
  /// The moment at which all processes of all hosts go, on this host's clock.
  std::int64_t leave_together();
  void run_threads(bool traced);
  void run_guarded(std::size_t index, bool traced);
  void work(std::size_t index);
  void end_pass();
  std::uint64_t publish_progress();
  std::vector<std::string> busy_streams() const;
  void hang();
  void abort_communicators();
  /// Ends the run: an operation failed.
  void fail(const std::string& what);
  std::string place_of_current(const ThreadState& state) const;
  /// In a program with a fault: that it surfaced in a CUDA call. Empty for other errors.
  std::string fault_in(const std::exception& error) const;

  const Program& program_;
  const Processes& processes_;
  RunEnd end_;
  std::uint32_t process_;
  int first_ordinal_;
  SharedState shared_;
  HostBarriers barriers_;
  HostClocks clocks_;
  HostMessages messages_;
  std::unique_ptr<Signals> signals_;
  std::vector<std::unique_ptr<HostFunctions>> host_functions_;  ///< by thread of threads_
  Objects objects_;
  std::vector<std::unique_ptr<ThreadState>> states_;
  std::vector<std::unique_ptr<HostThreadRunner>> threads_;
  std::int64_t released_ns_ = 0;
  std::atomic<std::uint64_t> passes_{0};
  std::atomic<bool> ends_{false};  ///< it hangs, or an operation failed
  bool has_fault_;                 ///< of the program

  // More than one host thread: each has a worker, woken before the pass and released by go_.
  std::vector<std::thread> workers_;
  std::atomic<std::uint32_t> woken_{0};  ///< number of the pass
  std::atomic<std::uint32_t> ready_{0};
  std::atomic<std::uint32_t> go_{0};  ///< number of the pass
  std::atomic<std::uint32_t> done_{0};
  std::atomic<bool> traced_{false};
  std::atomic<bool> stop_{false};

  Watchdog watchdog_;  // last: its thread reads all of the above
};

}  // namespace foretrace::hw
