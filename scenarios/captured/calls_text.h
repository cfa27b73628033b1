// The calls of a captured rank as operations of a scenario, one a line.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "scenarios/captured/groups.h"
#include "scenarios/captured/work.h"

namespace foretrace::captured {

/// Objects that the operations name, and what could not be said.
struct Named {
  std::map<std::uint32_t, std::int64_t> streams;  ///< beside the legacy default one: priority
  std::set<std::uint32_t> events, graphs;
  std::int64_t operand = 2;  ///< largest of a product's operands, bytes
  std::int64_t part = 16, whole = 16;  ///< of collectives: what a rank gives and gets, at most
  std::int64_t host = 16;              ///< of copies with host memory
  std::int64_t device = 16;            ///< of copies and fills within a device
  std::map<std::string, std::uint64_t> left_out;  ///< calls by kind
};

class CallsText {
 public:
  CallsText(const Party& party, Named& named);

  /// Lines of what is captured into graphs before the region; empty without any.
  std::string graphs(int indent);
  /// Lines of the region's calls.
  std::string step(int indent);

 private:
  void line(const std::string& text);
  void nccl_line(const std::string& text);
  void group(const Call& call);
  void host_work(std::int64_t until);
  void write(const Call& call);
  void launch(const Call& call);
  void gemm(const Call& call);
  void tf32_product(const Call& call);
  void closed(const Call& call);
  void kernel(const Call& call, const Work& work);
  void copy(const Call& call);
  void collective(const Call& call);
  void synchronize(const Call& call);
  std::string on(const Call& call);
  std::string label(const Call& call) const;
  const Signature* signature(const Call& call) const;
  /// Of the bytes of an operation that several launches of one kernel share, this one's.
  double share_of(const Call& call) const;

  const Party& party_;
  const Record& record_;
  Named& named_;
  std::string margin_, text_;
  std::string grouped_;  ///< NCCL's calls of the group that is open
  int groups_open_ = 0;
  std::int64_t at_ = 0;
  /// Blocks of all launches of a kernel in an operation.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> blocks_;
  std::uint64_t asking_ = 0;  ///< calls before which CUDA is asked
  double queries_ = 0;        ///< asked since the last line of host work
  std::set<std::uint32_t> closed_;  ///< operations whose closed call is written
};

}  // namespace foretrace::captured
