// The calls of a captured rank as operations.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/captured/groups.h"
#include "scenarios/captured/objects.h"
#include "scenarios/captured/work.h"

namespace foretrace::captured {

class Calls {
 public:
  Calls(const Party& party, Objects& objects);

  /// What is captured into graphs before the region.
  void graphs(Block& block);
  /// The region's calls.
  void step(Block& block);

 private:
  void add(OpKind kind, std::string label = {});
  void add_nccl(OpKind kind, std::string label);
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
  StreamRef stream_of(const Call& call);
  std::string label(const Call& call) const;
  const Signature* signature(const Call& call) const;
  /// Of the bytes of an operation that several launches of one kernel share, this one's.
  double share_of(const Call& call) const;

  const Party& party_;
  const Record& record_;
  Objects& objects_;
  Block* block_ = nullptr;                               ///< that is being written
  std::vector<std::pair<OpKind, std::string>> grouped_;  ///< NCCL's calls of the group that is open
  int groups_open_ = 0;
  std::int64_t at_ = 0;
  /// Blocks of all launches of a kernel in an operation.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> blocks_;
  std::uint64_t asking_ = 0;        ///< calls before which CUDA is asked
  double queries_ = 0;              ///< asked since the last host work
  std::set<std::uint32_t> closed_;  ///< operations whose closed call is there
};

}  // namespace foretrace::captured
