// Runs one host thread's operations: walks the blocks as the scenario wrote them and times its
// regions. In a traced pass it also notes every call and tells CUPTI which operation it is in.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/execute/execute.h"
#include "hw/run/thread_state.h"
#include "hw/trace/records.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

class HostThreadRunner {
 public:
  HostThreadRunner(Context context, const Block& ops);

  void run_pass();
  void run_traced_pass();
  std::uint32_t thread() const { return context_.thread; }
  const std::vector<RegionTime>& regions() const { return regions_; }  ///< of the last pass
  const ThreadTrace& trace() const { return trace_; }
  ThreadState& state() { return context_.state; }
  Context& context() { return context_; }

 private:
  void start_pass();
  void run_block(const Block& block, std::uint64_t instance);
  void run(const Op& op, std::uint64_t instance);
  void repeat(const Repeat& repeat, std::uint64_t instance);
  void time_region(const Op& op, const Region& region, std::uint64_t instance);
  void run_group(const Op& op, const NcclGroup& group, std::uint64_t instance);
  void capture_graph(const Op& op, const GraphCapture& capture, std::uint64_t instance);
  template <class Kind>
  void run_one(const Op& op, const Kind& kind, std::uint64_t instance);
  void note_grouped_call(Execution execution, const OpKind& kind);

  Context context_;
  const Block& ops_;
  bool traced_ = false;
  std::vector<Execution> groups_;  ///< open ones, outermost first; traced passes only
  std::vector<RegionTime> regions_;
  ThreadTrace trace_;
};

}  // namespace foretrace::hw
