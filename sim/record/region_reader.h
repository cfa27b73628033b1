// What a measured region is about: its place in the fit's summary.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace {

struct RegionContent {
  std::string group;  ///< "host calls", "copies", "kernels", "NCCL all_reduce"
  bool nccl = false;
  bool graph = false;       ///< its NCCL operations are launched as a CUDA graph
  std::uint64_t bytes = 0;  ///< of its first NCCL operation, over all ranks, as nccl-tests counts
  std::vector<std::uint32_t> ops;  ///< that may have device spans: leaves, and graph launches
};

/// Looks into regions, and into the graphs that they launch.
class RegionReader {
 public:
  explicit RegionReader(const Program& program);

  /// Of the region with this OpId, in this execution.
  RegionContent content(std::uint32_t region, std::uint64_t instance) const;
  /// NCCL's protocol in it, as predicted: "LL", "LL128", "Simple"; empty for none.
  std::string protocol(const RegionContent& content, std::uint32_t region, std::uint64_t instance,
                       const Timeline& predicted) const;
  /// In which pass of the file's loops the region ran: loops beside each other are counted
  /// through, so that neighbouring sizes of a sweep have neighbouring numbers.
  std::uint64_t pass_of(std::uint32_t region, std::uint64_t instance) const;

 private:
  const Op& op(std::uint32_t id) const { return *infos_[id].op; }
  void collect(const Block& block, std::vector<const Op*>& leaves) const;
  /// How often `inner` runs in one execution of `outer`.
  std::uint64_t runs_inside(std::uint32_t inner, std::uint32_t outer) const;

  const Program& program_;
  std::vector<OpInfo> infos_;
  std::map<std::uint32_t, const Block*> captures_;      ///< by graph
  std::map<std::uint32_t, std::uint64_t> loop_begins_;  ///< by outermost loop: its first pass
};

}  // namespace foretrace
