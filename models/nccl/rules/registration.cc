#include "models/nccl/rules/registration.h"

namespace foretrace::nccl {
namespace {

bool registers_graphs(const Settings& settings) {
  return settings.get(Number::GraphRegister, 1) != 0;
}

}  // namespace

bool can_map(const Settings& settings, bool by_nccl, bool one_process) {
  const bool cu_mem = settings.get(Number::CuMem, 1) != 0;
  if (by_nccl && cu_mem) return true;
  return settings.get(Number::LegacyCudaRegister, 0) != 0 && !one_process;
}

bool may_write_directly(const Settings& settings, CollectiveKind kind, bool in_place, Offer send,
                        Offer recv, bool captured) {
  // The sums of these go through NCCL's buffers in every step.
  if (kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::Reduce) return false;
  if (kind == CollectiveKind::AllReduce && in_place) return false;
  const bool by_graph = captured && registers_graphs(settings);
  if (!by_graph && !send.is_registered) return false;
  return may_transfer_directly(settings, recv, captured);
}

bool may_transfer_directly(const Settings& settings, Offer buffer, bool captured) {
  const bool by_graph = captured && registers_graphs(settings);
  const bool by_call = buffer.is_registered && settings.get(Number::LocalRegister, 1) != 0;
  return buffer.can_be_mapped && (by_graph || by_call);
}

}  // namespace foretrace::nccl
