// The record of a captured PyTorch program, as scenarios/pytorch/README.md defines it, in memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/base/text/diagnostic.h"

namespace foretrace::captured {

struct Tensor {
  std::string type;  ///< "bf16"
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< empty: contiguous
  bool on_host = false;

  std::int64_t elements() const;
  /// Those that lie in memory: dimensions of stride 0 count once.
  std::int64_t different_elements() const;
};

/// An operation as the dispatcher saw it.
struct Signature {
  std::string name;             ///< "aten::mm"
  std::vector<Tensor> tensors;  ///< of its arguments, those of lists included, in order
  bool has_list = false;        ///< one of the arguments is a list of tensors
  /// Arguments that are no tensors, as JSON texts; "null" where not known, "" at a tensor's place.
  std::vector<std::string> plain;
};

struct Operation {
  std::uint32_t signature{};
  std::optional<std::uint32_t> parent;
  std::string phase;
};

bool is_known_type(std::string_view type);
/// Bytes of one element of a type's name; 4 for one that is not known.
std::int64_t bytes_of_type(const std::string& type);

/// A call of the host. Of each kind those members are set that the record has.
struct Call {
  std::string kind;      ///< "launch", "gemm", ...
  std::int64_t at = 0;   ///< ns of the host's own work since the region's begin
  std::uint32_t line{};  ///< in the record
  std::optional<std::uint32_t> operation;
  std::uint32_t stream = 0;
  std::uint32_t event = 0;
  std::string function;  ///< `f`, `w`, `dir`, `what`, `region`
  std::uint32_t name = 0;
  std::uint64_t grid = 0;   ///< blocks
  std::uint32_t block = 0;  ///< threads
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool transposes_a = false, transposes_b = false, adds = false;
  std::string type, compute, result;  ///< of a product's a, its sums, its result
  std::string operation_text;         ///< `ops` of a closed call, as JSON
  std::uint64_t count = 0;            ///< `n` of copies, fills and collectives
  bool pinned = false, asynchronous = true;
  std::string reduction;
  std::uint32_t comm = 0;
  std::optional<std::int64_t> root, peer;
  std::uint32_t graph = 0;
  bool in_graph = false;
  bool ends = false;
  std::int64_t instance = 0;
};

struct StreamOf {
  std::int64_t priority = 0;
};

struct Communicator {
  std::int64_t size = 1, rank = 0;
  std::vector<std::int64_t> ranks;  ///< empty: not known
  std::string name;
};

struct Memory {
  std::int64_t allocated_peak = 0, reserved_peak = 0;  ///< of the step; reserved 0: not known
  std::int64_t first_peak = 0;  ///< allocated in the steps before it, the first ones included
};

struct Record {
  std::string file;
  std::int64_t rank = 0, world = 1;
  std::int64_t local_world = 1;
  std::string torch, device, depth;
  std::string script_digest;  ///< of the script, its arguments and how many ranks; empty: not known
  double python_loop_ns = 0, torch_loop_ns = 0;
  std::vector<std::string> assumptions;
  std::vector<std::string> names;
  std::vector<Signature> signatures;
  std::vector<Operation> operations;
  std::map<std::uint32_t, StreamOf> streams;
  std::map<std::uint32_t, Communicator> comms;
  std::vector<Call> calls;  ///< in the host's order
  std::string region;       ///< the outermost
  std::optional<Memory> memory;
  /// The host's own time in the recorded step over what the calls' `at` say: these are by the clock
  /// on the wall, and count what others did on this machine.
  double own_share = 1;
  std::uint64_t queries = 0;  ///< calls of CUDA without a record of their own: cudaGetDevice, ...
};

/// JSON lines; `file` is the name in messages. Throws UsageError naming it and the line.
Record parse_record(std::string_view text, const std::string& file);

/// Plain or gzip'ed JSON lines. Throws UsageError naming file and line.
Record read_record(const std::filesystem::path& file);

}  // namespace foretrace::captured
