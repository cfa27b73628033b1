#include "reports/compare/rates.h"

#include <fmt/format.h>

#include <string_view>

#include "reports/table/text_table.h"

namespace foretrace {
namespace {

using Unit = AmountOfWork::Unit;

/// Bytes on the busiest link over NCCL's size; empty for what is no collective of nccl-tests.
std::optional<double> bus_share(std::string_view kind, double ranks) {
  if (kind == "nccl_all_reduce") return 2 * (ranks - 1) / ranks;
  if (kind == "nccl_broadcast" || kind == "nccl_reduce" || kind == "nccl_send") return 1;
  // The size is one rank's part of `ranks`.
  if (kind == "nccl_all_gather" || kind == "nccl_reduce_scatter" || kind == "nccl_all_to_all" ||
      kind == "nccl_gather" || kind == "nccl_scatter") {
    return ranks - 1;
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t size_of(const OpRow& op, std::uint64_t instance) {
  return instance < op.sizes.size() ? op.sizes[instance] : op.size_bytes;
}

std::optional<AmountOfWork> amount_of(const OpRow& op, std::uint64_t instance) {
  const std::string_view kind = op.kind == "region" ? op.work : op.kind;
  if (!op.shape.empty()) {
    double flops = 2;
    for (const std::uint64_t side : op.shape) flops *= static_cast<double>(side);
    return AmountOfWork{flops, Unit::Flops};
  }
  const auto bytes = static_cast<double>(size_of(op, instance));
  if (bytes == 0) return std::nullopt;
  if (kind.starts_with("memcpy") || kind.starts_with("memset")) {
    return AmountOfWork{bytes, Unit::Bytes};
  }
  const auto share = op.ranks > 1 ? bus_share(kind, op.ranks) : std::nullopt;
  if (!share) return std::nullopt;
  return AmountOfWork{bytes * *share, Unit::BusBytes};
}

std::string format_rate(const AmountOfWork& work, double ns) {
  if (ns <= 0) return {};
  return work.unit == Unit::Flops ? four_digits(work.amount / ns / 1e3) + " TFLOP/s"
                                  : four_digits(work.amount / ns) + " GB/s";
}

}  // namespace foretrace
