#include "hw/trace/activity_tracer.h"

#include <cupti.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>

#include "hw/trace/clock.h"
#include "hw/trace/cupti_check.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::hw {
namespace {

constexpr CUpti_ExternalCorrelationKind kOurs = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
constexpr unsigned kInstanceBits = 40;
constexpr std::size_t kBufferBytes = std::size_t{8} << 20;
constexpr std::size_t kBufferAlignment = 8;  // ACTIVITY_RECORD_ALIGNMENT

// The newest layouts that CUPTI 12.0 and 13.0 both declare: later ones only add fields at the end.
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
using PeerCopyRecord = CUpti_ActivityMemcpyPtoP4;
using SetRecord = CUpti_ActivityMemset4;

struct Found {
  DeviceActivity activity;
  std::uint32_t correlation{};
};

/// What the callbacks fill, on whatever thread CUPTI calls them.
struct Store {
  std::mutex mutex;
  std::vector<Found> found;
  std::unordered_map<std::uint32_t, std::uint64_t> external_ids;  ///< by correlation
  std::uint64_t dropped = 0;
};

Store& store() {
  static Store the_store;  // CUPTI's callbacks know nothing else
  return the_store;
}

std::uint64_t CUPTIAPI monotonic_timestamp() { return static_cast<std::uint64_t>(now_ns()); }

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(
      ::operator new (kBufferBytes, std::align_val_t{kBufferAlignment}, std::nothrow));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;  // as many as fit
}

template <class Record>
Found found_in(const Record& record, DeviceActivity::Kind kind) {
  Found found;
  found.activity.kind = kind;
  found.activity.begin_ns = static_cast<std::int64_t>(record.start);
  found.activity.end_ns = static_cast<std::int64_t>(record.end);
  found.activity.ordinal = static_cast<int>(record.deviceId);
  found.activity.stream_id = record.streamId;
  found.correlation = record.correlationId;
  return found;
}

void keep(Store& into, const CUpti_Activity* record) {
  // Records are packed: members are read by value, never bound to a reference.
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto* ours = reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
      if (ours->externalKind == kOurs) into.external_ids[ours->correlationId] = ours->externalId;
      return;
    }
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL: {
      const auto* kernel = reinterpret_cast<const KernelRecord*>(record);
      Found found = found_in(*kernel, DeviceActivity::Kind::Kernel);
      found.activity.name = readable_kernel_name(kernel->name);
      found.activity.grid_blocks = static_cast<std::uint32_t>(kernel->gridX) *
                                   static_cast<std::uint32_t>(kernel->gridY) *
                                   static_cast<std::uint32_t>(kernel->gridZ);
      into.found.push_back(std::move(found));
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      into.found.push_back(
          found_in(*reinterpret_cast<const CopyRecord*>(record), DeviceActivity::Kind::Copy));
      return;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      into.found.push_back(
          found_in(*reinterpret_cast<const PeerCopyRecord*>(record), DeviceActivity::Kind::Copy));
      return;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      into.found.push_back(
          found_in(*reinterpret_cast<const SetRecord*>(record), DeviceActivity::Kind::Set));
      return;
    default:  // records of API calls: needed for the correlation, not themselves
      return;
  }
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream_id, std::uint8_t* buffer,
                          std::size_t, std::size_t valid_bytes) {
  {
    Store& into = store();
    const std::scoped_lock lock{into.mutex};
    CUpti_Activity* record = nullptr;
    while (valid_bytes > 0 &&
           cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
      keep(into, record);
    }
    std::size_t dropped = 0;
    if (cuptiActivityGetNumDroppedRecords(context, stream_id, &dropped) == CUPTI_SUCCESS) {
      into.dropped += dropped;
    }
  }
  ::operator delete (buffer, std::align_val_t{kBufferAlignment});
}

// External correlation is attached to records of API calls: the runtime's, and the driver's
// launches, which NCCL uses.
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                         CUPTI_ACTIVITY_KIND_RUNTIME,
                                         CUPTI_ACTIVITY_KIND_DRIVER,
                                         CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMCPY2,
                                         CUPTI_ACTIVITY_KIND_MEMSET};

}  // namespace

std::uint64_t to_external_id(Execution execution) {
  FORETRACE_CHECK(
      execution.op < (1U << 24) && execution.instance < (std::uint64_t{1} << kInstanceBits),
      "an operation's number fits 64 bits for CUPTI");
  return (static_cast<std::uint64_t>(execution.op) << kInstanceBits) | execution.instance;
}

Execution from_external_id(std::uint64_t id) {
  return {static_cast<std::uint32_t>(id >> kInstanceBits),
          id & ((std::uint64_t{1} << kInstanceBits) - 1)};
}

OperationMark::OperationMark(Execution execution) {
  cupti_check(cuptiActivityPushExternalCorrelationId(kOurs, to_external_id(execution)));
}

OperationMark::~OperationMark() {
  std::uint64_t last = 0;
  static_cast<void>(cuptiActivityPopExternalCorrelationId(kOurs, &last));
}

ActivityTracer::ActivityTracer() {
  {
    const std::scoped_lock lock{store().mutex};
    store().found.clear();
    store().external_ids.clear();
    store().dropped = 0;
  }
  // Before any kind is enabled, or some records would be on CUPTI's own clock.
  cupti_check(cuptiActivityRegisterTimestampCallback(monotonic_timestamp));
  cupti_check(cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
  for (const CUpti_ActivityKind kind : kKinds) cupti_check(cuptiActivityEnable(kind));
}

ActivityTracer::~ActivityTracer() {
  for (const CUpti_ActivityKind kind : kKinds) static_cast<void>(cuptiActivityDisable(kind));
  static_cast<void>(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
}

std::vector<DeviceActivity> ActivityTracer::collect() {
  cupti_check(cuptiActivityFlushAll(0));
  cupti_check(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  Store& from = store();
  const std::scoped_lock lock{from.mutex};
  std::vector<DeviceActivity> result;
  for (Found& found : from.found) {
    if (found.activity.end_ns == 0) continue;  // CUPTI could not time it
    const auto cause = from.external_ids.find(found.correlation);
    if (cause != from.external_ids.end()) found.activity.cause = from_external_id(cause->second);
    result.push_back(std::move(found.activity));
  }
  from.found.clear();
  from.external_ids.clear();
  std::ranges::stable_sort(result, {}, &DeviceActivity::begin_ns);
  return result;
}

std::uint64_t ActivityTracer::dropped() const {
  const std::scoped_lock lock{store().mutex};
  return store().dropped;
}

std::uint32_t ActivityTracer::stream_id(cudaStream_t stream) {
  // The runtime's handles of the default streams are the driver's, too.
  std::uint32_t id = 0;
  const std::uint8_t per_thread = stream == cudaStreamPerThread ? 1 : 0;
  return cuptiGetStreamIdEx(nullptr, stream, per_thread, &id) == CUPTI_SUCCESS ? id : 0;
}

std::string ActivityTracer::problem() {
  const CUptiResult enabled = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (enabled != CUPTI_SUCCESS) return CuptiError::text_of(enabled);
  static_cast<void>(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  return "";
}

std::string readable_kernel_name(const char* mangled) {
  if (mangled == nullptr) return "";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled{
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free};
  std::string name = status == 0 ? demangled.get() : mangled;
  // The parameter list: the last parenthesis that closes at the end, outside of template arguments.
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    const bool anonymous = name.compare(i, 21, "(anonymous namespace)") == 0;
    if (name[i] == '(' && depth == 0 && !anonymous) {
      name.resize(i);
      break;
    }
  }
  if (name.starts_with("void ")) name.erase(0, 5);
  return name;
}

}  // namespace foretrace::hw
