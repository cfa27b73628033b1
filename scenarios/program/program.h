// The one representation both executors run: the objects every process owns, and what every host
// thread does, in order. The simulator (sim/) and the harness (hw/) see exactly this and nothing
// of the scenario text, so they cannot disagree about a scenario.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/fabric/fabric.h"
#include "scenarios/program/ops.h"
#include "scenarios/base/text/diagnostic.h"

namespace foretrace {

// ---- objects: every process has its own instance of each ---------------------------------------

enum class StreamKind : std::uint8_t { LegacyDefault, PerThreadDefault, Blocking, NonBlocking };

/// Program::streams begins with one LegacyDefault and then one PerThreadDefault per device.
struct Stream {
  std::string name;  ///< "comm(3)"; "default(0)" for the legacy default stream of device 0
  std::uint32_t device{};
  StreamKind kind = StreamKind::Blocking;
  int priority = 0;  ///< CUDA's: a lower number goes first
};

/// cudaDeviceGetStreamPriorityRange since Volta: this to 0.
inline constexpr int kHighestPriority = -5;

struct Event {
  std::string name;
  std::uint32_t device{};  ///< where it is created; taken from the streams that record it
  bool timing = true;
};

enum class MemoryKind : std::uint8_t {
  Device,
  Pinned,
  Pageable,
  FreshPageable  ///< allocated anew for every pass; its pages are untouched until the program
                 ///< touches them
};
/// What memory holds before a pass. Random: uniform in [0, 1); Normal: the standard normal
/// distribution, as weights and activations have it. Integers are 0 to 3.
enum class Contents : std::uint8_t { Random, Zeros, Normal };

struct Buffer {
  std::string name;
  MemoryKind memory = MemoryKind::Device;
  std::uint32_t device{};  ///< meaningful for Device memory
  Bytes size;
  Contents contents = Contents::Random;
  bool allocated_by_program = false;  ///< a malloc, malloc_async or host_alloc names it
  bool by_nccl = false;  ///< device memory of ncclMemAlloc, which NCCL can map into other processes
};

enum class CommInit : std::uint8_t {
  All,   ///< ncclCommInitAll: one process, all its devices
  Rank,  ///< ncclCommInitRank in every process, before the run
  Op     ///< by nccl_comm_init operations, in the run
};

struct RankPlace {
  std::uint32_t process{};
  std::uint32_t device{};
  friend auto operator<=>(const RankPlace&, const RankPlace&) = default;
};

/// A communicator as declared: the position in `members` is the rank.
struct Communicator {
  std::string name;
  CommInit init = CommInit::Rank;
  std::vector<RankPlace> members;
};

/// A handle on a communicator: the one that `device` of a process uses. Program::comms lists, for
/// every communicator, one handle per device, so `world(d)` resolves to first + d.
struct CommHandle {
  std::uint32_t communicator{};
  std::uint32_t device{};
};

struct Signal {
  std::string name;
};

/// An instantiated CUDA graph: empty until a graph_capture fills it.
struct Graph {
  std::string name;
};

/// Who arrives at a barrier: filled from the operations that name it.
struct BarrierParty {
  std::uint32_t process{};
  std::uint32_t thread{};  ///< index into Program::threads
};
struct Barrier {
  std::string name;  ///< empty for the barrier without a name
  std::vector<BarrierParty> parties;
};

// ---- who runs -----------------------------------------------------------------------------------

struct HostThread {
  std::string name;
  std::vector<std::uint32_t> processes;  ///< ascending
  Block ops;
};

/// A statement of the scenario about its own timeline, judged by `foretrace assert`.
struct Expectation {
  std::string kind;                ///< "overlap", "order", ...: see reports/judge/expectations.h
  std::vector<std::string> spans;  ///< labels of operations, or names of regions, in the order
                                   ///< written: [a, b], [after], [first, then], [region]
  std::optional<double> fraction;  ///< overlap, ratio, channels: at_least, 80% as 0.8
  std::optional<double> fraction_at_most;     ///< ratio, channels: at_most
  std::optional<Duration> at_most, at_least;  ///< `within` is at_most
  std::vector<std::string> on;      ///< judged for these machine models only; empty: for all
  std::vector<std::string> not_on;  ///< but not for these
  int line{};
  int column{};
};

struct Program {
  std::string name;
  std::string file;
  std::string summary;      ///< the first comment line: what the scenario shows
  std::string rule;         ///< a conformance scenario's: "documented" or "observed"; else empty
  std::string source;       ///< of a documented rule: the document and its section
  std::string captured_on;  ///< the GPU whose times the spins have; empty: none was captured
  std::vector<std::string> tags;  ///< what the scenario belongs to, for tables
  std::uint32_t nodes = 1;
  bool nodes_follow = false;    ///< the file says nothing: as many as the machine needs
  std::uint32_t processes = 1;  ///< over all nodes, as many on each
  SourceSpot processes_spot;    ///< where that is said; line 0: nowhere
  Placement placement = Placement::Nodewise;
  std::uint32_t devices = 1;  ///< GPUs per process
  std::uint32_t warmup = 1;   ///< passes before the measured ones; 0: cold, first-use costs show
  std::map<std::string, std::string> environment;  ///< allow-listed; set before the first CUDA call
  std::map<std::string, SourceSpot> environment_spots;  ///< where each variable stands

  std::optional<Fabric> fabric;      ///< in place of the machine's
  std::vector<MachineFault> faults;  ///< beside the machine's

  std::vector<Stream> streams;
  std::vector<Event> events;
  std::vector<Buffer> buffers;
  std::vector<Communicator> communicators;
  std::vector<CommHandle> comms;
  std::vector<Signal> signals;
  std::vector<Graph> graphs;
  std::vector<Barrier> barriers;
  std::vector<HostThread> threads;
  std::vector<Expectation> expectations;

  std::uint32_t op_count = 0;  ///< OpIds are 0 ... op_count-1
  std::string hash;  ///< of everything that decides what is run; not of names of files or lines
};

/// What a program says of itself, without objects, threads and how many processes there are.
Program head_of(const Program& program);

/// LegacyDefault and PerThreadDefault of each device: the first streams of a program.
void add_default_streams(Program& program);

/// Where a process runs, and which of its node's processes it is.
inline std::uint32_t node_of_process(const Program& program, std::uint32_t process) {
  const std::uint32_t per_node = std::max(1U, program.processes / program.nodes);
  return program.placement == Placement::Nodewise ? process / per_node : process % program.nodes;
}
inline std::uint32_t place_in_node(const Program& program, std::uint32_t process) {
  const std::uint32_t per_node = std::max(1U, program.processes / program.nodes);
  return program.placement == Placement::Nodewise ? process % per_node : process / program.nodes;
}

/// What an executor must know of an operation before it runs: filled once, indexed by OpId.
struct OpInfo {
  const Op* op{};
  std::uint32_t thread{};
  std::vector<OpId> loops;  ///< the Repeats around it, outermost first
};
std::vector<OpInfo> index_ops(const Program& program);

/// `instance` numbers the executions of one operation in one process: its loop indices read as a
/// mixed-radix number, the innermost index fastest. 0 outside of loops.
/// instance = (..(i1 * times2 + i2) * times3 + ..).
std::vector<std::int64_t> loop_indices(std::uint64_t instance,
                                       const std::vector<std::uint64_t>& times);

/// Canonical text of everything that decides what is run, and its digest: Program::hash.
std::string canonical_text(const Program& program);
std::string hash_of(const Program& program);

}  // namespace foretrace
