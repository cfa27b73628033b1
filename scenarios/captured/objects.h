// The Program of a captured step while it is made: the objects that its calls name, each once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/base/text/diagnostic.h"
#include "scenarios/captured/groups.h"
#include "scenarios/program/program.h"

namespace foretrace::captured {

class Objects {
 public:
  std::int64_t operand = 2;            ///< largest of a product's operands, bytes
  std::int64_t part = 16, whole = 16;  ///< of collectives: what a rank gives and gets, at most
  std::int64_t host = 16;              ///< of copies with host memory
  std::int64_t device = 16;            ///< of copies and fills within a device
  std::map<std::string, std::uint64_t> left_out;  ///< calls that cannot be said, by kind

  /// `head`: the program without objects and threads. All operations stand at `at`.
  Objects(Program head, const SourceSpot& at, const Groups& groups);

  /// An operation at the end of `block`, in the order of all.
  Op& add(Block& block, OpKind kind, std::string label = {});

  /// 0: the legacy default stream. CUDA takes priorities of its range only.
  StreamRef stream(std::uint32_t number, int priority);
  EventRef event(std::uint32_t number);
  GraphRef graph(std::uint32_t number);
  BufferRef buffer(std::string_view name) const;
  CommRef comm(const std::string& name) const { return {comms_.at(name), {}}; }

  Program& program() { return program_; }
  /// With streams, events and graphs in the order of their numbers, and buffers as large as they
  /// are needed.
  Program finish();

 private:
  /// Number of the capture to the one that operations have so far.
  using Known = std::map<std::uint32_t, std::uint32_t>;

  Program program_;
  int line_, column_;
  Known streams_, events_, graphs_;
  std::map<std::string, CommId> comms_;
};

}  // namespace foretrace::captured
