// What both executors produce: lanes, spans in nanoseconds since the run's start, flows between
// spans, and regions with every repetition's sample. Predicted and measured timelines differ in
// their origin block only, so everything downstream (compare, report, export) reads one type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/timeline/provenance.h"
#include "scenarios/serving/served_facts.h"

namespace foretrace {

/// Request: of an engine that serves some; its waiting, prefill and decoding are spans of part 0.
enum class LaneKind : std::uint8_t { HostThread, Stream, Request };
inline constexpr std::uint32_t kNoDevice = 0xffffffff;

struct Lane {
  LaneKind kind = LaneKind::HostThread;
  std::uint32_t node{};
  std::uint32_t process{};
  std::uint32_t device = kNoDevice;  ///< of the process; kNoDevice on host lanes
  std::string name;                  ///< "main", "compute", "comm(3)"
};

/// One interval on a lane. Joins with the other origin on (op, instance, process, device, part).
/// Written by the million: keep it at 40 bytes.
struct Span {
  std::uint32_t op{};        ///< OpId
  std::uint32_t lane{};      ///< index into Timeline::lanes
  std::uint64_t instance{};  ///< see scenarios/program/program.h: loop indices as one number
  std::int64_t begin_ns{};
  std::int64_t end_ns{};
  std::uint32_t part{};    ///< 0: the host's call; 1, 2, ...: what it made a device do, in order
  std::uint32_t detail{};  ///< index into Timeline::details; 0 is the empty one
};

/// Where a parameter's value came from: decides how far a prediction is trusted.
enum class ParameterClass : std::uint8_t { Fit, Datasheet, Published, Assumed };

/// How much of a predicted time a parameter of the machine is: d log(time) / d log(parameter).
struct ParameterShare {
  std::string parameter;  ///< "copy.h2d_bandwidth"
  double share{};         ///< negative for rates
  friend auto operator<=>(const ParameterShare&, const ParameterShare&) = default;
};

/// What many spans share; interned.
struct SpanDetail {
  std::string kernel;     ///< measured: the kernel's name
  std::string algorithm;  ///< NCCL: "Ring", "Tree"
  std::string protocol;   ///< NCCL: "LL", "LL128", "Simple"
  std::uint32_t channels{};
  double low_factor = 1;  ///< predicted: the duration's band is [low, high] times the duration
  double high_factor = 1;
  ParameterClass parameters = ParameterClass::Fit;
  std::vector<ParameterShare> decided_by;  ///< predicted: a tenth of the duration or more each
  friend auto operator<=>(const SpanDetail&, const SpanDetail&) = default;
};

enum class FlowKind : std::uint8_t { Launch, RecordWait, SendRecv, Signal };

/// An arrow from one span to another. Launch arrows are not stored: a host call (part 0) and the
/// spans with the same op, instance and process belong together.
struct Flow {
  std::uint32_t from{};  ///< indices into Timeline::spans
  std::uint32_t to{};
  FlowKind kind = FlowKind::RecordWait;
};

/// What the report must know of an operation without the scenario at hand.
struct OpRow {
  std::string kind;     ///< "memcpy_async"
  std::string variant;  ///< of a copy: "h2d pinned", "p2p"; of a kernel or NCCL: its data type;
                        ///< of what waits or records: its event's or stream's name
  std::string label;    ///< the scenario's `id`, or a region's name; may be empty
  int line{};
  std::uint64_t size_bytes{};        ///< 0 when it has none or it varies
  std::vector<std::uint64_t> loops;  ///< times of the repeats around it, outermost first
  /// Of a region whose reported time is that of one operation: its kind, and its sizes, shape,
  /// ranks and variant below as if they were the region's.
  std::string work = {};
  std::vector<std::uint64_t> sizes = {};  ///< bytes by instance, where they vary with the loops
  std::vector<std::uint64_t> shape = {};  ///< of a product: m, n, k, of several also how many
  std::uint32_t ranks = 0;                ///< of a collective: of its communicator
  std::uint32_t inside = 0;               ///< of a region: so many of the next OpIds are inside it
  /// Measured: none of the program's, but what a framework did in its stead, by name. Behind all of
  /// the program's.
  bool captured = false;
};

/// A measured interval of one process's host thread; or, with an event_elapsed_time for its
/// operation, the time between two events.
struct RegionSamples {
  std::uint32_t op{};
  std::uint64_t instance{};
  std::uint32_t process{};
  std::string name;
  std::uint64_t per = 1;                 ///< reported time = sample / per
  std::vector<std::int64_t> samples_ns;  ///< one per untraced repetition; predicted: one
  std::vector<std::uint32_t>
      starts;  ///< measured: which process launch each sample is from; may be empty
  std::optional<std::int64_t> traced_ns;  ///< the same interval in the traced repetition
  double low_factor = 1;                  ///< predicted: band
  double high_factor = 1;
  std::vector<ParameterShare> decided_by;  ///< predicted: of the work inside, by duration
  std::vector<std::string>
      learned_by;  ///< predicted: those of them that learned from this very region
};

/// What the framework's allocator holds on a device from a time on; bytes.
struct MemorySample {
  std::uint32_t process{};
  std::uint32_t device{};  ///< of the process
  std::int64_t at_ns{};
  std::int64_t allocated{};  ///< of tensors
  std::int64_t reserved{};   ///< taken from the GPU, in use or kept for later
  friend bool operator==(const MemorySample&, const MemorySample&) = default;
};

/// Measured: the most that the allocator held at a time, over the untraced repetitions of the last
/// start; bytes.
struct MemoryPeak {
  std::uint32_t process{};
  std::uint32_t device{};  ///< of the process
  std::int64_t allocated{};
  std::int64_t reserved{};
  friend bool operator==(const MemoryPeak&, const MemoryPeak&) = default;
};

/// Predicted: a kernel of NCCL that ran while some rank had not begun its own of the same transfer.
struct RankWait {
  std::uint32_t lane{};     ///< index into Timeline::lanes
  std::int64_t begin_ns{};  ///< of the kernel
  std::int64_t until_ns{};  ///< when the last rank came
  friend bool operator==(const RankWait&, const RankWait&) = default;
};

struct Timeline {
  Origin origin;
  Outcome outcome;
  std::vector<OpRow> ops;  ///< by OpId
  std::vector<Lane> lanes;
  std::vector<Span> spans;
  std::vector<SpanDetail> details{SpanDetail{}};
  std::vector<Flow> flows;
  std::vector<RegionSamples> regions;
  std::vector<MemorySample> memory{};      ///< where it is known; ascending in time for each device
  std::vector<MemoryPeak> memory_peaks{};  ///< where they are known
  std::optional<ServingFacts> serving{};   ///< of requests that an engine serves
  std::vector<RankWait> waits{};           ///< of a simulation; files do not have them
  std::int64_t end_ps{};                   ///< of a simulation, before rounding; files have it not
};

/// What an event_elapsed_time returned in this call: the median over repetitions. None for every
/// other span, and where its value is no result.
std::optional<std::int64_t> elapsed_ns(const Timeline& timeline, const Span& call);

/// How many of its operations are the program's: those that were captured come behind them.
std::size_t program_ops(const Timeline& timeline);

/// The index of `detail` in `timeline.details`, added when it is new.
std::uint32_t intern(Timeline& timeline, const SpanDetail& detail);

}  // namespace foretrace
