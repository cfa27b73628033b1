#include "hw/run/process_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/device_guard.h"
#include "hw/run/program_facts.h"
#include "hw/trace/activity_tracer.h"

namespace foretrace::hw {
namespace {

/// The result of `function`, or nothing when it takes longer: CUDA calls of a hanging process may
/// wait for a lock that a stuck thread holds. The thread is left behind; the process ends anyway.
template <class Function>
auto within(std::chrono::seconds limit, Function function) -> std::optional<decltype(function())> {
  std::packaged_task<decltype(function())()> task{std::move(function)};
  auto result = task.get_future();
  std::thread{std::move(task)}.detach();
  if (result.wait_for(limit) != std::future_status::ready) return std::nullopt;
  return result.get();
}

std::vector<BufferRef> buffers_of(const Gemm& op) { return {op.a, op.b, op.c}; }
std::vector<BufferRef> buffers_of(const Reduction& op) { return {op.src, op.dst}; }
std::vector<BufferRef> buffers_of(const Elementwise& op) {
  std::vector<BufferRef> buffers = op.sources;
  buffers.push_back(op.dst);
  return buffers;
}

/// Not the case for buffers that the program itself allocates.
bool hold_memory(const std::vector<BufferRef>& buffers, Context& context) {
  return std::ranges::all_of(buffers, [&](const BufferRef& ref) {
    return context.objects.buffer(ref.resolve(context.variables)).holds_memory();
  });
}

/// Turns of a loop for which a library kernel's memory is asked for beforehand.
constexpr std::uint64_t kMostPrepared = 100'000;

std::uint64_t executions_of(const OpInfo& info, const std::vector<OpInfo>& infos) {
  std::uint64_t times = 1;
  for (const OpId loop : info.loops) {
    times = times_capped(times, std::get<Repeat>(infos[loop.value].op->kind).times);
  }
  return times;
}

/// What an error says that only the loss of the context explains; empty for all others.
std::string fault_text(cudaError_t code) {
  switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
      return fmt::format("{} ({}), surfaced here", cudaGetErrorString(code),
                         cudaGetErrorName(code));
    default:
      return "";
  }
}

[[noreturn]] void wait_for_the_end() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours{1});
}

}  // namespace

ProcessRun::ProcessRun(const Program& program, const Processes& processes, int first_ordinal,
                       std::chrono::nanoseconds timeout, RunEnd end)
    : program_{program},
      processes_{processes},
      end_{std::move(end)},
      process_{static_cast<std::uint32_t>(processes.rank())},
      first_ordinal_{first_ordinal},
      shared_{processes, program.barriers.size()},
      barriers_{program, processes, shared_},
      clocks_{processes},
      messages_{processes},
      signals_{std::make_unique<Signals>(program.signals.size())},
      objects_{program, processes, first_ordinal},
      has_fault_{has_fault(program)},
      watchdog_{timeout, [this] { return publish_progress(); }, [this] { hang(); }} {
  for (const std::uint32_t t : threads_of(program, process_)) {
    states_.push_back(std::make_unique<ThreadState>());
    host_functions_.push_back(std::make_unique<HostFunctions>(*signals_));
    Context context{program_,  objects_,        barriers_,
                    *signals_, *states_.back(), *host_functions_.back(),
                    t,         {process_}};
    threads_.push_back(
        std::make_unique<HostThreadRunner>(std::move(context), program.threads[t].ops));
  }
  if (threads_.size() < 2) return;
  for (std::size_t i = 0; i < threads_.size(); ++i) workers_.emplace_back([this, i] { work(i); });
}

ProcessRun::~ProcessRun() {
  signals_->close();
  if (std::uncaught_exceptions() > 0) {
    // Streams may still have host functions to call: what those use stays, the process ends anyway.
    static_cast<void>(signals_.release());
    for (auto& functions : host_functions_) static_cast<void>(functions.release());
  }
  stop_ = true;
  woken_.fetch_add(1);
  woken_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ProcessRun::preload() {
  // CUDA loads a kernel when it is first launched, which may wait for the device: never while an
  // NCCL kernel there waits for a peer. NCCL loads its own kernels when a communicator is made.
  const auto infos = index_ops(program_);
  for (const auto& thread : threads_) {
    for_each_op(program_.threads[thread->thread()].ops, [&](const Op& op) {
      const OpInfo& info = infos[op.id.value];
      const bool never_runs = std::ranges::any_of(info.loops, [&](OpId loop) {
        return std::get<Repeat>(infos[loop.value].op->kind).times == 0;
      });
      if (never_runs) return;
      Context context = thread->context();
      context.variables = variables_at(info, infos, 0, process_);
      std::visit(
          [&](const auto& kind) {
            using T = std::decay_t<decltype(kind)>;
            if constexpr (std::is_same_v<T, Gemm> || std::is_same_v<T, Elementwise> ||
                          std::is_same_v<T, Reduction>) {
              if (hold_memory(buffers_of(kind), context)) execute(kind, context);
            } else if constexpr (std::is_same_v<T, LibraryKernel>) {
              // Its memory has its largest size before time is taken.
              const std::uint64_t times = executions_of(info, infos);
              for (std::uint64_t i = 0; i < std::min(times, kMostPrepared); ++i) {
                context.variables = variables_at(info, infos, i, process_);
                static_cast<void>(library_memory(kind, context));
              }
              context.variables = variables_at(info, infos, 0, process_);
              execute(kind, context);
            }
          },
          op.kind);
    });
  }
  objects_.synchronize_devices();
}

void ProcessRun::pass() {
  watched([this] {
    begin_pass();
    run_threads(false);
    end_pass();
  });
}

TracedPass ProcessRun::traced_pass() {
  TracedPass result;
  watched([&] {
    begin_pass();
    objects_.wake_tracer();
    run_threads(true);
    objects_.synchronize_devices();
    for (const auto& functions : host_functions_) {  // while there are graphs to ask
      const auto ran = functions->activities();
      result.host_functions.insert(result.host_functions.end(), ran.begin(), ran.end());
    }
    end_pass();
  });
  std::ranges::stable_sort(result.host_functions, {}, &DeviceActivity::begin_ns);
  result.process = process_;
  result.node = static_cast<std::uint32_t>(processes_.host());
  result.first_ordinal = first_ordinal_;
  result.released_ns = released_ns_;
  result.calls.resize(program_.threads.size());
  for (const auto& thread : threads_) {
    result.calls[thread->thread()] = thread->trace().calls;
    for (const GroupedCall& grouped : thread->trace().grouped) {
      use_device(grouped.ordinal);
      result.grouped.push_back(
          {grouped.group, grouped.call, grouped.ordinal,
           ActivityTracer::stream_id(static_cast<cudaStream_t>(grouped.stream))});
    }
  }
  return result;
}

void ProcessRun::watched(const std::function<void()>& body) {
  watchdog_.arm();
  try {
    body();
  } catch (const OperationFailed& error) {
    fail(error.what());
  } catch (const std::exception& error) {
    // Aborting the communicators makes a stuck call fail: the watchdog is about to end the run.
    if (ends_) wait_for_the_end();
    // A fault that no operation of the program came to see: its pass waits for the devices.
    if (const std::string fault = fault_in(error); !fault.empty()) {
      fail(fmt::format("process {}, after its last operation: {}", process_, fault));
    }
    throw;
  }
  if (ends_) wait_for_the_end();
  watchdog_.disarm();
}

void ProcessRun::begin_pass() {
  for (const auto& state : states_) {
    state->phase = ThreadState::Phase::NotStarted;
    state->nccl_calls.clear();
  }
  signals_->reset();
  objects_.before_pass();
  ++passes_;
}

std::int64_t ProcessRun::leave_together() {
  const std::int64_t here = shared_.wait_for_pass(processes_);
  return processes_.one_host() ? here : clocks_.leave_together();
}

void ProcessRun::run_threads(bool traced) {
  if (workers_.empty()) {
    released_ns_ = leave_together();
    if (!threads_.empty()) run_guarded(0, traced);
    return;
  }
  const auto count = static_cast<std::uint32_t>(workers_.size());
  traced_ = traced;
  ready_ = 0;
  done_ = 0;
  const std::uint32_t number = woken_.fetch_add(1) + 1;
  woken_.notify_all();
  spin_until([&] { return ready_.load() == count; });
  released_ns_ = leave_together();
  go_.store(number, std::memory_order_release);
  // Asleep: the main thread must not take a core from the host threads it waits for.
  for (std::uint32_t done = done_; done != count; done = done_) done_.wait(done);
}

void ProcessRun::work(std::size_t index) {
  for (std::uint32_t number = 1;; ++number) {
    woken_.wait(number - 1);
    if (stop_) return;
    if (traced_) objects_.wake_tracer();  // every host thread's first launch is slow once
    ready_.fetch_add(1);
    spin_until([&] { return go_.load(std::memory_order_acquire) == number || stop_; });
    if (stop_) return;
    // An exception must not leave this thread, and the others may wait for it for ever.
    try {
      run_guarded(index, traced_);
    } catch (const OperationFailed& error) {
      fail(error.what());
    } catch (const std::exception& error) {
      if (ends_) wait_for_the_end();
      end_.broke(error.what());
    }
    done_.fetch_add(1, std::memory_order_release);
    done_.notify_all();
  }
}

void ProcessRun::run_guarded(std::size_t index, bool traced) {
  ThreadState& state = *states_[index];
  state.phase = ThreadState::Phase::Running;
  try {
    if (traced) {
      threads_[index]->run_traced_pass();
    } else {
      threads_[index]->run_pass();
    }
  } catch (const OperationFailed& error) {
    throw OperationFailed{place_of_current(state) + ": " + error.what()};
  } catch (const std::exception& error) {
    const std::string fault = fault_in(error);
    if (fault.empty()) throw;
    throw OperationFailed{place_of_current(state) + ": " + fault};
  }
  state.phase = ThreadState::Phase::Finished;
}

std::string ProcessRun::place_of_current(const ThreadState& state) const {
  const auto infos = index_ops(program_);
  return place_of(program_, infos.at(state.current().op), process_);
}

std::string ProcessRun::fault_in(const std::exception& error) const {
  if (!has_fault_) return "";
  if (const auto* cuda = dynamic_cast<const CudaError*>(&error)) return fault_text(cuda->code());
  // NCCL and cuBLAS have errors of their own: any CUDA call tells a lost context.
  for (std::uint32_t d = 0; d < program_.devices; ++d) {
    if (cudaSetDevice(objects_.ordinal(d)) != cudaSuccess) continue;
    if (auto text = fault_text(cudaStreamQuery(cudaStreamLegacy)); !text.empty()) return text;
  }
  return "";
}

void ProcessRun::end_pass() {
  objects_.after_pass();
  ++passes_;
  // Nobody leaves the watched part before everybody is through: a process that hangs needs all
  // others' watchdogs to explain why.
  shared_.wait_for_pass(processes_);
}

std::uint64_t ProcessRun::publish_progress() {
  std::uint64_t mine = passes_;
  for (const auto& state : states_) mine += state->completed.load(std::memory_order_relaxed);
  shared_.progress(processes_.local_rank()).store(mine, std::memory_order_relaxed);
  if (const auto heard = messages_.exchange(shared_.local_progress())) {
    shared_.set_remote_progress(*heard);
  }
  if (!processes_.one_host() && process_ == 0) {
    if (const auto what = take_told(Told::Failure)) fail(*what);
  }
  return shared_.total_progress();
}

std::vector<RegionTime> ProcessRun::region_times() const {
  std::vector<RegionTime> result;
  for (const auto& thread : threads_) {
    result.insert(result.end(), thread->regions().begin(), thread->regions().end());
  }
  return result;
}

std::vector<std::string> ProcessRun::busy_streams() const {
  std::vector<std::string> result;
  for (std::uint32_t s = 0; s < program_.streams.size(); ++s) {
    // A per-thread default stream would be the asking thread's.
    if (program_.streams[s].kind == StreamKind::PerThreadDefault) continue;
    if (cudaStreamQuery(objects_.stream(StreamId{s}).use()) == cudaErrorNotReady) {
      result.push_back(program_.streams[s].name);
    }
  }
  return result;
}

ProcessReport ProcessRun::report() const {
  ProcessReport report;
  report.process = process_;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    report.threads.push_back(report_of(threads_[i]->thread(), *states_[i]));
  }
  constexpr std::chrono::seconds kAnswerTime{3};
  for (const auto& functions : host_functions_) {
    const auto waiting = functions->waiting();
    report.waiting_host_functions.insert(report.waiting_host_functions.end(), waiting.begin(),
                                         waiting.end());
  }
  report.busy_streams =
      within(kAnswerTime, [this] { return busy_streams(); }).value_or(std::vector<std::string>{});
  return report;
}

void ProcessRun::hang() {
  // Others that wait for a process that failed do not hang: it is about to end them.
  if (shared_.has_failed() || ends_.exchange(true)) return;
  end_.hang(report());
  abort_communicators();
  end_.end_hang();
}

void ProcessRun::fail(const std::string& what) {
  if (ends_.exchange(true) || !shared_.claim_failure()) wait_for_the_end();
  end_.failed_operation(what);
  abort_communicators();
  end_.end_failed();
}

void ProcessRun::abort_communicators() {
  constexpr std::chrono::seconds kAbortTime{5};
  within(kAbortTime, [this] {
    objects_.abort_communicators();
    return true;
  });
}

}  // namespace foretrace::hw
