// How far a predicted duration may be off: each operation's band, from the spread and the source of
// the machine parameters that its duration is made of.
//
// - fit: the parameter's spread (one sigma over machines and starts). Where the file gives none,
//   5 %: eight of ten repeats of NCCL's graph launches on 2 to 4 H200s are that near.
// - published: 15 %.
// - datasheet: 25 %. Of an H200's, programs reach 371 of NVLink's 450 GB/s and 4.1 of the memory's
//   4.8 TB/s.
// - assumed: 50 %; also a fit that is used outside of the sizes that it was made for.
//
// An operation has the widest band of its parameters, at most a factor of two. Waiting and the
// order of events have none of their own. A region's band is what its operations on this process
// have on average, weighted by duration: as if all that are alike were off together.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"

namespace foretrace::sim {

/// Factors of a duration.
struct Band {
  double low = 1;
  double high = 1;
  ParameterClass parameters = ParameterClass::Fit;
};

/// The widest band of those parameters that the machine has; `size_bytes` (0: unknown) decides
/// whether they were fitted for it.
Band band_of(const Machine& machine, std::span<const Param> params, std::uint64_t size_bytes);

class SpanBands {
 public:
  explicit SpanBands(const Machine& machine) : machine_{machine} {}

  /// The detail of a span of `op`: `detail`, which names NCCL's choice or is the empty one, with
  /// the band of what the operation does on the host (`part` 0) or on a device.
  std::uint16_t detail_of(Timeline& timeline, std::uint32_t op, std::uint16_t part,
                          std::uint16_t detail);

 private:
  Band host_band(const OpRow& op) const;
  Band device_band(const OpRow& op, const SpanDetail& detail) const;

  const Machine& machine_;
  std::map<std::pair<std::uint64_t, std::uint16_t>, std::uint16_t> known_;
  std::vector<std::pair<std::uint16_t, std::uint16_t>> plain_;  ///< by op: host, device; 0: not yet
};

}  // namespace foretrace::sim
