// What operations do to known data: the data check's memory model, and which NCCL calls of which
// ranks meet. Used by check_plan.cc alone.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "hw/check/plan.h"

namespace foretrace::hw {

struct ProcessCall {
  std::uint32_t process{};
  CheckCall call;
};

/// False for operations that only take time or order others: the check skips them, and those whose
/// results it does not know (gemm, random fills), so that their buffers keep known data.
bool is_executed(const OpKind& kind);

/// The n-th collective of a communicator, or the n-th transfer from one rank to another.
struct Meeting {
  std::uint32_t communicator{};
  int from = -1;  ///< -1: a collective
  int to = -1;
  std::uint64_t round{};
  friend auto operator<=>(const Meeting&, const Meeting&) = default;
};

class Meetings {
 public:
  /// Nothing for operations that need no other rank.
  std::optional<Meeting> join(const Program& program, std::uint32_t process, const CheckCall& call);
  bool is_full(const Program& program, const Meeting& meeting) const;

 private:
  struct Seat {
    std::uint32_t communicator{};
    int from{};
    int to{};
    int side{};  ///< rank of a collective; 0 the sender, 1 the receiver
    friend auto operator<=>(const Seat&, const Seat&) = default;
  };
  std::map<Seat, std::uint64_t> taken_;
  std::map<Meeting, std::size_t> present_;
  std::set<std::pair<std::uint32_t, CommId>> created_;  ///< by process: by an nccl_comm_init
};

/// The content of every buffer of every process.
class ModelMemory {
 public:
  explicit ModelMemory(const Program& program);

  /// Executes calls that run together, and adds what must be in memory afterwards to each
  /// process's step.
  void apply(const std::vector<ProcessCall>& calls, std::map<std::uint32_t, CheckStep>& steps);

  std::uint64_t results() const { return results_; }
  std::uint64_t expected() const { return expected_; }

 private:
  Content& content(std::uint32_t process, BufferId buffer);
  void apply_one(const ProcessCall& call, CheckStep& step);
  void apply_collective(const std::vector<const ProcessCall*>& ranks,
                        std::map<std::uint32_t, CheckStep>& steps);
  void apply_transfer(const ProcessCall& send, const ProcessCall& recv, CheckStep& step);
  void expect(std::uint32_t process, BufferId buffer, std::uint64_t begin, std::uint64_t end,
              CheckStep& step);
  void reset(std::uint32_t process, BufferId buffer);
  /// Adds the elements up, the first time only: a loop reduces the same data again and again.
  double reduced_once(const Value& value, std::uint64_t count, RedOp op);

  struct Reduced {
    Value value;
    std::uint64_t count;
    RedOp op;
    double result;
  };
  const Program& program_;
  std::vector<std::vector<Content>> contents_;  ///< by process and buffer
  std::vector<Reduced> reduced_;
  std::uint64_t results_ = 0;
  std::uint64_t expected_ = 0;
};

}  // namespace foretrace::hw
