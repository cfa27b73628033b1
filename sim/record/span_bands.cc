#include "sim/record/span_bands.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "scenarios/values/quantity.h"

namespace foretrace::sim {
namespace {

using Params = std::vector<Param>;

constexpr double kFitWithoutSpread = 0.05;
constexpr double kPublished = 0.15;
constexpr double kDatasheet = 0.25;
constexpr double kAssumed = 0.5;
constexpr double kMost = 1.0;

std::optional<double> bytes_in(std::string_view text) {
  const NameLookup no_names = [](std::string_view) -> Parsed<Quantity> {
    return tl::unexpected{QuantityError{"no name means anything here", {}, 0}};
  };
  const Parsed<Quantity> parsed = parse_quantity(std::string{text}, no_names);
  if (!parsed || parsed->unit != kSize) return std::nullopt;
  return parsed->constant.convert_to<double>();
}

/// "48 B..2 GiB". Ranges of other things (calls in a row) say nothing about a size.
bool is_outside(const std::string& range, std::uint64_t size_bytes) {
  const std::size_t dots = range.find("..");
  if (size_bytes == 0 || dots == std::string::npos) return false;
  const auto low = bytes_in(std::string_view{range}.substr(0, dots));
  const auto high = bytes_in(std::string_view{range}.substr(dots + 2));
  const auto size = static_cast<double>(size_bytes);
  return low && high && (size < *low || size > *high);
}

double relative(const ParamValue& value, ParameterClass source) {
  switch (source) {
    case ParameterClass::Fit:
      return value.spread > 0 ? value.spread : kFitWithoutSpread;
    case ParameterClass::Published:
      return std::max(kPublished, value.spread);
    case ParameterClass::Datasheet:
      return std::max(kDatasheet, value.spread);
    case ParameterClass::Assumed:
      break;
  }
  return std::max(kAssumed, value.spread);
}

struct OfKind {
  std::string_view kind;
  std::string_view variant;  ///< that the operation's begins with
  Params params;
};

template <std::size_t N>
Params look_up(const std::array<OfKind, N>& table, const OpRow& op) {
  for (const OfKind& row : table) {
    if (op.kind == row.kind && op.variant.starts_with(row.variant)) return row.params;
  }
  return {};
}

const auto& host_table() {
  using enum Param;
  static const std::array kTable{
      OfKind{"spin", "", {HostLaunchKernel}},
      OfKind{"gemm", "", {HostLaunchGemm}},
      OfKind{"elementwise", "", {HostLaunchKernel}},
      OfKind{"reduction", "", {HostLaunchKernel}},
      OfKind{"host_func", "", {HostLaunchHostFunc}},
      OfKind{"host_fill", "", {HostFillBandwidth}},
      OfKind{"memcpy_async", "h2d pageable", {PageableH2dBandwidth}},
      OfKind{"memcpy_async", "d2h", {HostMemcpyAsync}},
      OfKind{"memcpy_async", "h2d", {HostMemcpyAsync}},
      OfKind{"memcpy_async", "p2p", {HostMemcpyPeer}},
      OfKind{"memcpy_async", "", {HostMemcpyDevice}},
      OfKind{"memset_async", "", {HostMemset}},
      OfKind{"event_record", "", {HostEventRecord}},
      OfKind{"stream_wait_event", "", {HostStreamWaitEvent}},
      OfKind{"event_query", "", {HostQuery}},
      OfKind{"stream_query", "", {HostQuery}},
      OfKind{"event_elapsed_time", "", {HostElapsedTime}},
      OfKind{"malloc", "", {HostMalloc}},
      OfKind{"free", "", {HostFree}},
      OfKind{"malloc_async", "", {HostMallocAsync}},
      OfKind{"free_async", "", {HostFreeAsync}},
      OfKind{"host_alloc", "", {HostAllocBase, HostAllocBandwidth}},
      OfKind{"host_free", "", {HostFreeHostBase, HostFreeHostBandwidth}},
      OfKind{"host_register", "", {HostRegisterBase, HostRegisterBandwidth}},
      OfKind{"enable_peer_access", "", {HostEnablePeer}},
      OfKind{"graph_launch", "", {HostGraphLaunch}},
      OfKind{"graph_capture", "", {HostGraphInstantiate}},
      OfKind{"nccl_comm_init", "", {NcclInit}},
  };
  return kTable;
}

const auto& device_table() {
  using enum Param;
  static const std::array kTable{
      OfKind{"gemm", "float32", {GemmRateF32}},
      OfKind{"gemm", "float64", {GemmRateF64}},
      OfKind{"gemm", "", {GemmRateHalf}},
      OfKind{"elementwise", "", {UnaryBandwidth, BinaryBandwidth}},
      OfKind{"reduction", "", {ReductionBandwidth}},
      OfKind{"memset_async", "", {MemsetBandwidth}},
      OfKind{"memset", "", {MemsetBandwidth}},
      OfKind{"memcpy_async", "h2d pageable", {PageableH2dBandwidth}},
      OfKind{"memcpy_async", "d2h pageable", {PageableD2hBandwidth}},
      OfKind{"memcpy_async", "h2d", {H2dBandwidth}},
      OfKind{"memcpy_async", "d2h", {D2hBandwidth}},
      OfKind{"memcpy_async", "p2p", {P2pBandwidth}},
      OfKind{"memcpy_async", "d2d", {D2dBandwidth}},
      OfKind{"memcpy", "h2d pageable", {PageableH2dBandwidth}},
      OfKind{"memcpy", "d2h pageable", {PageableD2hBandwidth}},
      OfKind{"memcpy", "h2d", {H2dBandwidth}},
      OfKind{"memcpy", "d2h", {D2hBandwidth}},
      OfKind{"memcpy", "p2p", {P2pBandwidth}},
      OfKind{"memcpy", "d2d", {D2dBandwidth}},
      OfKind{"nccl_all_reduce", "", {NcclAllReduceLlBase}},
      OfKind{"nccl_all_gather", "", {NcclAllGatherLlBase}},
      OfKind{"nccl_reduce_scatter", "", {NcclReduceScatterLlBase}},
      OfKind{"nccl_broadcast", "", {NcclBroadcastLlBase}},
      OfKind{"nccl_reduce", "", {NcclReduceLlBase}},
      OfKind{"nccl_all_to_all", "", {NcclAllToAllLlBase}},
      OfKind{"nccl_gather", "", {NcclGatherLlBase}},
      OfKind{"nccl_scatter", "", {NcclScatterLlBase}},
      OfKind{"nccl_send", "", {NcclSendRecvLlBase}},
      OfKind{"nccl_recv", "", {NcclSendRecvLlBase}},
  };
  return kTable;
}

}  // namespace

Band band_of(const Machine& machine, std::span<const Param> params, std::uint64_t size_bytes) {
  double most = 0;
  Band band;
  for (const Param param : params) {
    if (!machine.has(param)) continue;
    const ParamValue& value = machine.get(param);
    const bool fitted_elsewhere =
        value.trusted_as() == ParameterClass::Fit && is_outside(value.range, size_bytes);
    const auto as = [&](ParameterClass kind) {
      return fitted_elsewhere ? ParameterClass::Assumed : kind;
    };
    most = std::max(most, relative(value, as(value.trusted_as())));
    band.parameters = std::max(band.parameters, as(value.source));
  }
  most = std::min(most, kMost);
  band.low = 1 / (1 + most);
  band.high = 1 + most;
  return band;
}

Band SpanBands::host_band(const OpRow& op) const {
  if (op.kind.starts_with("nccl_") && op.kind != "nccl_comm_init") {
    const std::array params{Param::NcclHostCollective};
    return band_of(machine_, params, 0);
  }
  return band_of(machine_, look_up(host_table(), op), 0);
}

Band SpanBands::device_band(const OpRow& op, const SpanDetail& detail) const {
  Params params = look_up(device_table(), op);
  if (detail.algorithm == "Tree") params = {Param::NcclTreeLlBase};
  if (detail.algorithm.starts_with("NVLS")) params = {Param::NcclNvlsBase};
  const bool is_nccl = op.kind.starts_with("nccl_");
  const bool timed = std::ranges::any_of(params, [&](Param p) { return machine_.has(p); });
  if (is_nccl && machine_.nodes > 1) params.push_back(Param::NcclNetRingLlStep);
  if (is_nccl && !timed) {  // NCCL's own price stands in
    return {1 / (1 + kAssumed), 1 + kAssumed, ParameterClass::Assumed};
  }
  return band_of(machine_, params, op.size_bytes);
}

std::uint16_t SpanBands::detail_of(Timeline& timeline, std::uint32_t op, std::uint16_t part,
                                   std::uint16_t detail) {
  const bool on_device = part > 0;
  if (detail == 0) {
    if (plain_.empty()) plain_.resize(timeline.ops.size());
    const auto [host, device] = plain_[op];
    if (const std::uint16_t known = on_device ? device : host; known != 0) return known - 1;
  } else {
    const auto known = known_.find({std::uint64_t{op} << 1 | (on_device ? 1 : 0), detail});
    if (known != known_.end()) return known->second;
  }
  SpanDetail banded = timeline.details[detail];
  const OpRow& row = timeline.ops[op];
  const Band band = on_device ? device_band(row, banded) : host_band(row);
  banded.low_factor = band.low;
  banded.high_factor = band.high;
  banded.parameters = band.parameters;
  const std::uint16_t index = intern(timeline, banded);
  if (detail == 0) {
    (on_device ? plain_[op].second : plain_[op].first) = static_cast<std::uint16_t>(index + 1);
  } else {
    known_[{std::uint64_t{op} << 1 | (on_device ? 1 : 0), detail}] = index;
  }
  return index;
}

}  // namespace foretrace::sim
