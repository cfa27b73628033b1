#include "scenarios/program/op_facts.h"

#include <map>
#include <string>
#include <utility>

namespace foretrace {
namespace {

using enum StreamWork;
constexpr auto kCuda = HostActs::Cuda;
constexpr auto kNccl = HostActs::Nccl;

// ---- of a kind: one function for each, in the order of ops.h
// --------------------------------------

/// `acts`, `work`, `waits`, `reports_errors`, `can_be_captured`, `can_be_grouped`.
struct KindFactsOf {
  KindFacts operator()(const HostCompute&) const {
    return {HostActs::Itself, None, HostWaits::No, false, true, true};
  }
  KindFacts operator()(const HostFill&) const { return {HostActs::Itself}; }
  KindFacts operator()(const HostBarrier&) const {
    return {HostActs::Meets, None, HostWaits::ForThreads, false, false, true};
  }
  KindFacts operator()(const HostSignal&) const {
    return {HostActs::Meets, None, HostWaits::No, false, false, true};
  }
  KindFacts operator()(const HostWait&) const {
    return {HostActs::Meets, None, HostWaits::ForSignal, false, false, true};
  }
  KindFacts operator()(const HostParallel&) const { return {HostActs::Itself}; }
  KindFacts operator()(const ReadFile&) const { return {HostActs::Itself}; }
  KindFacts operator()(const FrameworkCall&) const {
    return {HostActs::Itself, None, HostWaits::No, false, true, true};
  }
  KindFacts operator()(const Spin&) const { return launch(Kernel); }
  KindFacts operator()(const Gemm&) const { return launch(Kernel); }
  KindFacts operator()(const Elementwise&) const { return launch(Kernel); }
  KindFacts operator()(const Reduction&) const { return launch(Kernel); }
  KindFacts operator()(const LibraryKernel&) const { return launch(Kernel); }
  KindFacts operator()(const HostFunc&) const { return launch(HostFunction); }
  KindFacts operator()(const Fault&) const { return {kCuda, Kernel}; }
  KindFacts operator()(const MemcpyAsync&) const { return launch(Copy); }
  KindFacts operator()(const Memcpy&) const { return {kCuda, Copy, HostWaits::ForStream, true}; }
  KindFacts operator()(const MemsetAsync&) const { return launch(Fill); }
  KindFacts operator()(const Memset&) const { return {kCuda, Fill, HostWaits::ForStream, true}; }
  KindFacts operator()(const EnablePeerAccess&) const { return {kCuda}; }
  KindFacts operator()(const EventRecord&) const { return launch(Record); }
  KindFacts operator()(const StreamWaitEvent&) const { return launch(Wait); }
  KindFacts operator()(const EventSynchronize&) const { return waiting(HostWaits::ForEvent); }
  KindFacts operator()(const EventQuery&) const { return waiting(HostWaits::No); }
  KindFacts operator()(const EventElapsedTime&) const { return waiting(HostWaits::No); }
  KindFacts operator()(const EventWaitFor&) const { return waiting(HostWaits::ForEvent); }
  KindFacts operator()(const StreamSynchronize&) const { return waiting(HostWaits::ForStream); }
  KindFacts operator()(const StreamQuery&) const { return waiting(HostWaits::No); }
  KindFacts operator()(const DeviceSynchronize&) const { return waiting(HostWaits::ForDevice); }
  KindFacts operator()(const Malloc&) const { return waiting(HostWaits::No); }
  KindFacts operator()(const Free&) const { return waiting(HostWaits::ForDevice); }
  KindFacts operator()(const MallocAsync&) const { return {kCuda, Marker}; }
  KindFacts operator()(const FreeAsync&) const { return {kCuda, Marker}; }
  KindFacts operator()(const HostAlloc&) const { return waiting(HostWaits::No); }
  KindFacts operator()(const HostFree&) const { return waiting(HostWaits::No); }
  KindFacts operator()(const HostRegister&) const { return waiting(HostWaits::No); }
  KindFacts operator()(const HostUnregister&) const { return waiting(HostWaits::ForDevice); }
  KindFacts operator()(const NcclCommInit&) const {
    return {kNccl, None, HostWaits::ForRanks, true, true, true};
  }
  KindFacts operator()(const NcclCommDestroy&) const {
    return {kNccl, None, HostWaits::ForDevice, true, true, true};
  }
  KindFacts operator()(const NcclCommRegister&) const { return {kNccl}; }
  KindFacts operator()(const NcclCommDeregister&) const { return {kNccl}; }
  KindFacts operator()(const NcclCollective&) const { return nccl(); }
  KindFacts operator()(const NcclSend&) const { return nccl(); }
  KindFacts operator()(const NcclRecv&) const { return nccl(); }
  KindFacts operator()(const GraphLaunch&) const { return {kCuda, Graph}; }
  KindFacts operator()(const Repeat&) const {
    return {HostActs::Inside, None, HostWaits::No, false, true, true};
  }
  KindFacts operator()(const Region&) const { return {HostActs::Inside}; }
  KindFacts operator()(const NcclGroup&) const {
    return {HostActs::Inside, None, HostWaits::No, false, true, true};
  }
  KindFacts operator()(const GraphCapture&) const { return {HostActs::Inside}; }

 private:
  static KindFacts launch(StreamWork work) { return {kCuda, work, HostWaits::No, false, true}; }
  static KindFacts waiting(HostWaits waits) { return {kCuda, None, waits, true}; }
  static KindFacts nccl() { return {kNccl, StreamWork::Nccl, HostWaits::No, false, true, true}; }
};

// ---- of one operation: the objects that it names
// --------------------------------------------------

BufferAccess reads(const BufferRef& buffer) { return {&buffer, false}; }
BufferAccess writes(const BufferRef& buffer) { return {&buffer, true}; }
BufferAccess reads(const BufferRef& buffer, const BytesExpr& size) {
  return {&buffer, false, nullptr, &size};
}
BufferAccess writes(const BufferRef& buffer, const BytesExpr& size) {
  return {&buffer, true, nullptr, &size};
}

struct ObjectsOf {
  OpFacts& facts;

  void operator()(const HostCompute&) const {}
  void operator()(const HostFill& op) const {
    facts.size = &op.size;
    facts.accesses = {writes(op.dst, op.size)};
  }
  void operator()(const HostBarrier& op) const { facts.barrier = &op.barrier; }
  void operator()(const HostSignal& op) const { facts.signal_given = &op.signal; }
  void operator()(const HostWait& op) const { facts.signal_taken = &op.signal; }
  void operator()(const HostParallel&) const {}
  void operator()(const ReadFile& op) const {
    facts.size = &op.size;
    facts.accesses = {writes(op.dst, op.size)};
  }
  void operator()(const FrameworkCall&) const {}
  void operator()(const Spin& op) const { facts.stream = &op.stream; }
  void operator()(const Gemm& op) const {
    facts.stream = &op.stream;
    facts.type = op.type;
    facts.accesses = {reads(op.a), reads(op.b), writes(op.c)};
    if (op.adds_to_c) facts.accesses.push_back(reads(op.c));
  }
  void operator()(const Elementwise& op) const {
    facts.stream = &op.stream;
    facts.type = op.type;
    facts.size = &op.size;
    for (const BufferRef& source : op.sources) facts.accesses.push_back(reads(source, op.size));
    facts.accesses.push_back(writes(op.dst, op.size));
  }
  void operator()(const Reduction& op) const {
    facts.stream = &op.stream;
    facts.type = op.type;
    facts.size = &op.size;
    facts.accesses = {reads(op.src, op.size), {&op.dst, true, nullptr, nullptr, size_of(op.type)}};
  }
  void operator()(const LibraryKernel& op) const { facts.stream = &op.stream; }
  void operator()(const HostFunc& op) const {
    facts.stream = &op.stream;
    facts.signal_taken = op.wait ? &*op.wait : nullptr;
    facts.signal_given = op.signal ? &*op.signal : nullptr;
  }
  void operator()(const Fault& op) const { facts.stream = &op.stream; }
  void operator()(const MemcpyAsync& op) const {
    facts.stream = &op.stream;
    copy(op);
  }
  void operator()(const Memcpy& op) const { copy(op); }
  void operator()(const MemsetAsync& op) const {
    facts.stream = &op.stream;
    facts.size = &op.size;
    facts.accesses = {writes(op.dst, op.size)};
  }
  void operator()(const Memset& op) const {
    facts.size = &op.size;
    facts.accesses = {writes(op.dst, op.size)};
  }
  void operator()(const EnablePeerAccess&) const {}
  void operator()(const EventRecord& op) const {
    facts.stream = &op.stream;
    facts.event_recorded = &op.event;
  }
  void operator()(const StreamWaitEvent& op) const {
    facts.stream = &op.stream;
    facts.events_waited_for = {&op.event};
  }
  void operator()(const EventSynchronize& op) const { facts.events_waited_for = {&op.event}; }
  void operator()(const EventQuery& op) const { facts.events_waited_for = {&op.event}; }
  void operator()(const EventElapsedTime& op) const {
    facts.events_waited_for = {&op.start, &op.end};
  }
  void operator()(const EventWaitFor& op) const { facts.events_waited_for = {&op.event}; }
  void operator()(const StreamSynchronize& op) const { facts.stream = &op.stream; }
  void operator()(const StreamQuery& op) const { facts.stream = &op.stream; }
  void operator()(const DeviceSynchronize&) const {}
  void operator()(const Malloc& op) const { facts.memory = &op.buffer; }
  void operator()(const Free& op) const { facts.memory = &op.buffer; }
  void operator()(const MallocAsync& op) const {
    facts.stream = &op.stream;
    facts.memory = &op.buffer;
  }
  void operator()(const FreeAsync& op) const {
    facts.stream = &op.stream;
    facts.memory = &op.buffer;
  }
  void operator()(const HostAlloc& op) const { facts.memory = &op.buffer; }
  void operator()(const HostFree& op) const { facts.memory = &op.buffer; }
  void operator()(const HostRegister& op) const { facts.memory = &op.buffer; }
  void operator()(const HostUnregister& op) const { facts.memory = &op.buffer; }
  void operator()(const NcclCommInit& op) const { facts.comm = &op.comm; }
  void operator()(const NcclCommDestroy& op) const { facts.comm = &op.comm; }
  void operator()(const NcclCommRegister& op) const { facts.comm = &op.comm; }
  void operator()(const NcclCommDeregister& op) const { facts.comm = &op.comm; }
  void operator()(const NcclCollective& op) const {
    nccl(op);
    facts.accesses = {reads(op.send), writes(op.recv)};
  }
  void operator()(const NcclSend& op) const {
    nccl(op);
    facts.peer = &op.peer;
    facts.accesses = {reads(op.buffer)};
  }
  void operator()(const NcclRecv& op) const {
    nccl(op);
    facts.peer = &op.peer;
    facts.accesses = {writes(op.buffer)};
  }
  void operator()(const GraphLaunch& op) const {
    facts.stream = &op.stream;
    facts.graph = &op.graph;
  }
  void operator()(const Repeat& op) const {
    facts.body = &op.ops;
    facts.times = op.times;
  }
  void operator()(const Region& op) const { facts.body = &op.ops; }
  void operator()(const NcclGroup& op) const { facts.body = &op.ops; }
  void operator()(const GraphCapture& op) const {
    facts.stream = &op.stream;
    facts.graph = &op.graph;
    facts.body = &op.ops;
  }

 private:
  template <class Op>
  void copy(const Op& op) const {
    facts.size = &op.size;
    facts.accesses = {{&op.src, false, &op.src_offset, &op.size},
                      {&op.dst, true, &op.dst_offset, &op.size}};
  }
  template <class Op>
  void nccl(const Op& op) const {
    facts.stream = &op.stream;
    facts.comm = &op.comm;
    facts.size = &op.size;
    facts.type = op.type;
  }
};

using ByName = std::map<std::string, KindFacts, std::less<>>;

template <std::size_t... I>
ByName by_name(std::index_sequence<I...> /*alternatives*/) {
  ByName all;
  const auto add = [&](const OpKind& kind) {
    all.emplace(kind_name(kind), std::visit(KindFactsOf{}, kind));
  };
  (add(std::variant_alternative_t<I, AnyOp>{}), ...);
  for (const CollectiveKind collective :
       {CollectiveKind::AllReduce, CollectiveKind::Broadcast, CollectiveKind::Reduce,
        CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllToAll,
        CollectiveKind::Gather, CollectiveKind::Scatter}) {
    NcclCollective op{};
    op.kind = collective;
    add(op);
  }
  return all;
}

}  // namespace

bool is_of_the_root_alone(const OpKind& kind, const BufferAccess& access) {
  const auto* call = std::get_if<NcclCollective>(&kind);
  if (call == nullptr) return false;
  return access.writes
             ? call->kind == CollectiveKind::Reduce || call->kind == CollectiveKind::Gather
             : call->kind == CollectiveKind::Broadcast || call->kind == CollectiveKind::Scatter;
}

OpFacts op_facts(const OpKind& kind) {
  OpFacts facts;
  static_cast<KindFacts&>(facts) = std::visit(KindFactsOf{}, kind);
  std::visit(ObjectsOf{facts}, kind);
  return facts;
}

const KindFacts* kind_facts(std::string_view name) {
  static const ByName kAll = by_name(std::make_index_sequence<std::variant_size_v<AnyOp>>{});
  const auto found = kAll.find(name);
  return found == kAll.end() ? nullptr : &found->second;
}

bool allocates(const OpKind& kind) {
  return std::holds_alternative<Malloc>(kind) || std::holds_alternative<MallocAsync>(kind) ||
         std::holds_alternative<HostAlloc>(kind);
}

bool frees(const OpKind& kind) {
  return std::holds_alternative<Free>(kind) || std::holds_alternative<FreeAsync>(kind) ||
         std::holds_alternative<HostFree>(kind);
}

std::vector<const BufferRef*> buffers_used(const OpKind& kind) {
  if (const auto* one = std::get_if<NcclCommRegister>(&kind)) return {&one->buffer};
  if (const auto* one = std::get_if<HostRegister>(&kind)) return {&one->buffer};
  if (const auto* one = std::get_if<HostUnregister>(&kind)) return {&one->buffer};
  std::vector<const BufferRef*> used;
  for (const BufferAccess& access : op_facts(kind).accesses) {
    if (!is_of_the_root_alone(kind, access)) used.push_back(access.buffer);
  }
  return used;
}

const CommRef* nccl_comm(const OpKind& kind) { return op_facts(kind).comm; }

}  // namespace foretrace
