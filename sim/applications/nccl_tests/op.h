// nccl-tests' operations and its arithmetic: names, types, how sizes are rounded, and what it calls
// algorithm and bus bandwidth.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/program/ops.h"

namespace foretrace {

enum class NcclTestsOp : std::uint8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  Broadcast,
  Reduce,
  AllToAll,
  SendRecv,
  Gather,
  Scatter
};

struct NcclTestsOpInfo {
  std::string_view name;      ///< nccl-tests' program without "_perf": "alltoall"
  std::string_view scenario;  ///< "nccl_all_to_all"; of sendrecv none
  bool reduces;
  bool has_root;
  bool is_total;  ///< its size counts every rank's part, not one vector
};
const NcclTestsOpInfo& info(NcclTestsOp op);

/// "alltoall", "alltoall_perf" or "all_to_all". Throws UsageError with a suggestion.
NcclTestsOp parse_nccl_tests_op(const std::string& text);

struct NcclTestsType {
  std::string_view name;      ///< "float"
  std::string_view scenario;  ///< "float32"
  Bytes element;
};
/// Unsigned integers move and add as signed ones. Throws UsageError with a suggestion.
const NcclTestsType& parse_nccl_tests_type(const std::string& text);

/// sum, prod, min, max, avg. Throws UsageError with a suggestion.
std::string parse_nccl_tests_redop(const std::string& text);

/// "8", "64K", "1.5G", "4GiB": K, M and G are powers of two. Throws UsageError naming `flag`.
std::uint64_t parse_nccl_tests_size(const std::string& text, const std::string& flag);

/// One line of the table: its columns size and count.
struct NcclTestsSize {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;  ///< elements: of the vector, or of one rank's part
  friend bool operator==(const NcclTestsSize&, const NcclTestsSize&) = default;
};

/// What nccl-tests makes of a requested size: whole elements; an operation whose size is a total
/// gets parts of a multiple of 16 bytes, so the least is 16 bytes per rank. 0 when it is too small.
NcclTestsSize nccl_tests_size(NcclTestsOp op, std::uint64_t requested, const NcclTestsType& type,
                              std::uint32_t ranks);

/// -b, -e, -i and -f.
struct NcclTestsRange {
  std::uint64_t min_bytes = 32u << 20;
  std::uint64_t max_bytes = 32u << 20;
  std::uint64_t step_bytes = 1u << 20;
  std::uint64_t step_factor = 0;  ///< 0: steps of step_bytes
};
/// Throws UsageError when it is empty, never ends, or has more than 10,000 sizes.
std::vector<std::uint64_t> sizes_in(const NcclTestsRange& range);

/// GB/s: 1e9 bytes per second.
double algorithm_gbps(std::uint64_t bytes, double time_us);
/// Bus bandwidth over algorithm bandwidth: what one link carries, whatever the rank count.
double bus_factor(NcclTestsOp op, std::uint32_t ranks);

}  // namespace foretrace
