// Where the operations go that one call reads as: torch.distributed's, read_scalar and task_graph,
// so that executors never see them. The reader of files and the expansions of steps have it in
// common. Internal to scenarios/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "scenarios/program/program.h"

namespace foretrace {

/// What a barrier reduces and read_scalar copies: one float.
inline constexpr std::int64_t kScalarBytes = 4;

/// Where the operations go that one of the file reads as; they stand at its line.
class Lowering {
 public:
  /// `origin` is the operation of the file: its label, line and column.
  Lowering(Program& program, std::string_view thread, Op origin, Block& block)
      : program_{program}, thread_{thread}, origin_{std::move(origin)}, block_{block} {}

  std::string_view thread() const { return thread_; }  ///< the host thread's name
  const std::string& label() const { return origin_.label; }

  void add(OpKind kind, std::string label = {}) {
    block_.push_back({OpId{program_.op_count++}, std::move(label), origin_.line, origin_.column,
                      std::move(kind), true});
  }

  /// The same place in the program, for operations that stand at another line of the file.
  Lowering at(Op origin) const { return {program_, thread_, std::move(origin), block_}; }

  /// The same place, into the body of an operation that was added here.
  Lowering inside(Block& body) const {
    return {program_, thread_, {{}, {}, origin_.line, origin_.column, {}}, body};
  }

  /// Adds an empty nccl_group. Its body is valid until the next operation is added here.
  Block& add_nccl_group() {
    add(NcclGroup{}, origin_.label);
    return std::get<NcclGroup>(block_.back().kind).ops;
  }

 private:
  Program& program_;
  std::string_view thread_;
  Op origin_;
  Block& block_;
};

}  // namespace foretrace
