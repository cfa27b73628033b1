#include "hw/check/effects.h"

#include <algorithm>
#include <cmath>

#include "hw/run/program_facts.h"

namespace foretrace::hw {
namespace {

/// Elements that the host adds up for a reduction's expected value: some tenths of a second.
constexpr std::uint64_t kMaxReduced = std::uint64_t{1} << 24;

template <class T, class... Others>
constexpr bool is_one_of = (std::is_same_v<T, Others> || ...);

CommId comm_of(const CheckCall& call) {
  return std::visit(
      [&]([[maybe_unused]] const auto& op) -> CommId {
        if constexpr (requires { op.comm; }) return op.comm.resolve(call.variables);
        return {};
      },
      call.op->kind);
}

DataType data_type_of(Element element) { return static_cast<DataType>(element); }

bool is_representable(DataType type, double x) {
  switch (type) {
    case DataType::Float16:
      return std::abs(x) <= 65504;
    case DataType::BFloat16:
    case DataType::Float32:
      return std::abs(x) < 1e38;
    case DataType::Float64:
      return true;
    case DataType::Int8:
      return std::abs(x) <= 127;
    case DataType::Int32:
      return std::abs(x) < 0x1p31;
    case DataType::Int64:
      return std::abs(x) < 0x1p53;
    case DataType::Float8E4M3:
    case DataType::Float8E5M2:
    case DataType::Float4E2M1:
      break;  // operands of products only
  }
  return false;
}

/// Rounding of the result, and of float sums of up to kMaxReduced elements.
double tolerance_of(DataType type) {
  switch (type) {
    case DataType::Float16:
      return 2e-3;
    case DataType::BFloat16:
      return 1e-2;
    case DataType::Float32:
      return 1e-4;
    case DataType::Float64:
      return 1e-12;
    case DataType::Int8:
    case DataType::Int32:
    case DataType::Int64:
    case DataType::Float8E4M3:
    case DataType::Float8E5M2:
    case DataType::Float4E2M1:
      return 0;
  }
  return 0;
}

double reduced(const Value& value, std::uint64_t count, RedOp op) {
  double result = element_of(value, 0);
  for (std::uint64_t i = 1; i < count; ++i) {
    const double x = element_of(value, i);
    if (op == RedOp::Prod) {
      result *= x;
    } else if (op == RedOp::Min) {
      result = std::min(result, x);
    } else if (op == RedOp::Max) {
      result = std::max(result, x);
    } else {
      result += x;
    }
  }
  return op == RedOp::Avg ? result / static_cast<double>(count) : result;
}

/// In place, a rank's part lies within the larger buffer.
std::uint64_t part_offset(BufferId send, BufferId recv, int rank, std::uint64_t part) {
  return send == recv ? static_cast<std::uint64_t>(rank) * part : 0;
}

}  // namespace

bool is_executed(const OpKind& kind) {
  return std::visit(
      []([[maybe_unused]] const auto& op) {
        using T = std::decay_t<decltype(op)>;
        if constexpr (std::is_same_v<T, Elementwise>) return !op.sources.empty();
        return !is_one_of<T, HostCompute, HostFill, HostParallel, ReadFile, HostBarrier, HostSignal,
                          HostWait, FrameworkCall, Spin, Gemm, LibraryKernel, HostFunc, Fault,
                          EventQuery, EventElapsedTime, EventWaitFor, StreamQuery>;
      },
      kind);
}

std::optional<Meeting> Meetings::join(const Program& program, std::uint32_t process,
                                      const CheckCall& call) {
  Seat seat;
  Meeting meeting;
  const bool meets = std::visit(
      [&](const auto& op) {
        using T = std::decay_t<decltype(op)>;
        if constexpr (is_one_of<T, NcclCollective, NcclSend, NcclRecv, NcclCommInit>) {
          const CommId comm = op.comm.resolve(call.variables);
          const int rank = rank_of(program, comm, process);
          meeting.communicator = program.comms[comm.value].communicator;
          if constexpr (std::is_same_v<T, NcclCommInit>) {
            const bool first = created_.insert({process, comm}).second;
            if (op.if_needed && !first) return false;
          }
          if constexpr (is_one_of<T, NcclSend, NcclRecv>) {
            const int peer = static_cast<int>(op.peer.eval(call.variables));
            const bool sends = std::is_same_v<T, NcclSend>;
            meeting.from = sends ? rank : peer;
            meeting.to = sends ? peer : rank;
            seat.side = sends ? 0 : 1;
          } else {
            seat.side = rank;
          }
          return true;
        }
        if constexpr (std::is_same_v<T, NcclCommDestroy>) {
          created_.erase({process, op.comm.resolve(call.variables)});
        }
        return false;
      },
      call.op->kind);
  if (!meets) return std::nullopt;
  seat.communicator = meeting.communicator;
  seat.from = meeting.from;
  seat.to = meeting.to;
  meeting.round = taken_[seat]++;
  ++present_[meeting];
  return meeting;
}

bool Meetings::is_full(const Program& program, const Meeting& meeting) const {
  const std::size_t needed =
      meeting.from >= 0 ? 2 : program.communicators[meeting.communicator].members.size();
  const auto present = present_.find(meeting);
  return present != present_.end() && present->second >= needed;
}

ModelMemory::ModelMemory(const Program& program) : program_{program} {
  contents_.resize(program.processes);
  for (std::uint32_t process = 0; process < program.processes; ++process) {
    contents_[process].resize(program.buffers.size());
    for (std::uint32_t b = 0; b < program.buffers.size(); ++b) reset(process, BufferId{b});
  }
}

void ModelMemory::reset(std::uint32_t process, BufferId buffer) {
  const foretrace::Buffer& declared = program_.buffers[buffer.value];
  Content& holds = content(process, buffer);
  holds = Content{};
  if (declared.allocated_by_program) return;
  const DataType type = data_type_of(checked_types(program_)[buffer.value]);
  const std::uint64_t whole = declared.size.count / size_of(type).count * size_of(type).count;
  holds.set({0, whole, {type, RedOp::Sum, {{pattern_seed(process, buffer), 0, 1}}}});
}

Content& ModelMemory::content(std::uint32_t process, BufferId buffer) {
  return contents_[process][buffer.value];
}

void ModelMemory::expect(std::uint32_t process, BufferId buffer, std::uint64_t begin,
                         std::uint64_t end, CheckStep& step) {
  ++results_;
  std::uint64_t known = 0;
  for (Piece& piece : content(process, buffer).within(begin, end)) {
    known += piece.end - piece.begin;
    step.pieces.push_back({buffer, std::move(piece)});
  }
  if (known == end - begin) ++expected_;
}

void ModelMemory::apply(const std::vector<ProcessCall>& calls,
                        std::map<std::uint32_t, CheckStep>& steps) {
  // Within a group the calls of one communicator meet by their order on each rank.
  Meetings meetings;
  std::map<Meeting, std::vector<const ProcessCall*>> met;
  for (const ProcessCall& call : calls) {
    if (const auto meeting = meetings.join(program_, call.process, call.call)) {
      met[*meeting].push_back(&call);
    } else {
      apply_one(call, steps[call.process]);
    }
  }
  for (const auto& [meeting, ranks] : met) {
    if (std::holds_alternative<NcclCollective>(ranks.front()->call.op->kind)) {
      apply_collective(ranks, steps);
    } else if (ranks.size() == 2 && meeting.from >= 0) {
      const bool first_sends = std::holds_alternative<NcclSend>(ranks[0]->call.op->kind);
      const ProcessCall& recv = *ranks[first_sends ? 1 : 0];
      apply_transfer(*ranks[first_sends ? 0 : 1], recv, steps[recv.process]);
    }
  }
}

double ModelMemory::reduced_once(const Value& value, std::uint64_t count, RedOp op) {
  for (const Reduced& known : reduced_) {
    if (known.value == value && known.count == count && known.op == op) return known.result;
  }
  reduced_.push_back({value, count, op, reduced(value, count, op)});
  return reduced_.back().result;
}

void ModelMemory::apply_one(const ProcessCall& from, CheckStep& step) {
  const Variables v = from.call.variables;
  const std::uint32_t process = from.process;
  const auto holds = [&](const BufferRef& ref) -> Content& {
    return content(process, ref.resolve(v));
  };
  const auto copy = [&](const auto& op) {
    const std::uint64_t size = op.size.eval(v).count;
    const std::uint64_t source = op.src_offset.eval(v).count;
    const std::uint64_t target = op.dst_offset.eval(v).count;
    const auto pieces = holds(op.src).within(source, source + size);
    holds(op.dst).copy(pieces, source, target, size);
    expect(process, op.dst.resolve(v), target, target + size, step);
  };
  const auto set = [&](const auto& op) {
    const BufferId dst = op.dst.resolve(v);
    const std::uint64_t size = op.size.eval(v).count;
    const DataType type = data_type_of(checked_types(program_)[dst.value]);
    Content& target = holds(op.dst);
    target.forget(0, size);
    target.set({0, size / size_of(type).count * size_of(type).count, {type, RedOp::Sum, {}}});
    expect(process, dst, 0, size, step);
  };
  const auto forget_all = [&](const BufferRef& ref) { holds(ref) = Content{}; };
  std::visit(
      Overloaded{
          [&](const MemcpyAsync& op) { copy(op); }, [&](const Memcpy& op) { copy(op); },
          [&](const MemsetAsync& op) { set(op); }, [&](const Memset& op) { set(op); },
          [&](const Elementwise& op) {
            const std::uint64_t size = op.size.eval(v).count;
            std::vector<const Content*> sources;
            for (const BufferRef& source : op.sources) sources.push_back(&holds(source));
            // One source is max(x, 0), which leaves patterns as they are; two are added.
            const auto result = combined_pieces(sources, 0, size, op.type, RedOp::Sum);
            holds(op.dst).forget(0, size);
            for (const Piece& piece : result) holds(op.dst).set(piece);
            expect(process, op.dst.resolve(v), 0, size, step);
          },
          [&](const Reduction& op) {
            const std::uint64_t size = op.size.eval(v).count;
            const std::uint64_t element = size_of(op.type).count;
            const auto value = holds(op.src).value_of(0, size);
            ++results_;
            if (value && value->type == op.type && size / element <= kMaxReduced && size > 0) {
              const double result = reduced_once(*value, size / element, op.op);
              if (is_representable(op.type, result)) {
                ++expected_;
                step.numbers.push_back({op.dst.resolve(v), op.type, result, tolerance_of(op.type)});
              }
            }
            holds(op.dst).forget(0, element);
          },
          [&](const Malloc& op) { forget_all(op.buffer); },
          [&](const Free& op) { forget_all(op.buffer); },
          [&](const MallocAsync& op) { forget_all(op.buffer); },
          [&](const FreeAsync& op) { forget_all(op.buffer); },
          [&](const HostAlloc& op) { forget_all(op.buffer); },
          [&](const HostFree& op) { forget_all(op.buffer); },
          [](const auto&) {},  // order, registration, communicators: no data
      },
      from.call.op->kind);
}

void ModelMemory::apply_transfer(const ProcessCall& send, const ProcessCall& recv,
                                 CheckStep& step) {
  const auto& from = std::get<NcclSend>(send.call.op->kind);
  const auto& to = std::get<NcclRecv>(recv.call.op->kind);
  const std::uint64_t size = to.size.eval(recv.call.variables).count;
  const BufferId target = to.buffer.resolve(recv.call.variables);
  const auto pieces =
      content(send.process, from.buffer.resolve(send.call.variables)).within(0, size);
  content(recv.process, target).copy(pieces, 0, 0, size);
  expect(recv.process, target, 0, size, step);
}

void ModelMemory::apply_collective(const std::vector<const ProcessCall*>& ranks,
                                   std::map<std::uint32_t, CheckStep>& steps) {
  struct Member {
    const ProcessCall* call;
    const NcclCollective* op;
    int rank;
    BufferId send, recv;
    std::uint64_t part;  ///< Op::size
  };
  std::vector<Member> members;
  for (const ProcessCall* call : ranks) {
    const auto* op = std::get_if<NcclCollective>(&call->call.op->kind);
    if (op == nullptr) return;  // ranks that disagree: NCCL will say so
    const Variables v = call->call.variables;
    members.push_back({call, op, rank_of(program_, comm_of(call->call), call->process),
                       op->send.resolve(v), op->recv.resolve(v), op->size.eval(v).count});
  }
  std::ranges::sort(members, {}, &Member::rank);
  const NcclCollective& kind = *members.front().op;
  const std::uint64_t n = members.size();
  const std::uint64_t part = members.front().part;
  const int root = static_cast<int>(kind.root.eval(members.front().call->call.variables));

  // What each rank sends, before anybody receives.
  const auto sent = [&](const Member& m, std::uint64_t begin, std::uint64_t size) {
    return content(m.call->process, m.send).within(begin, begin + size);
  };
  struct Delivery {
    const Member* to;
    std::uint64_t at;       ///< in the receive buffer
    std::uint64_t from_at;  ///< where the pieces count from
    std::vector<Piece> pieces;
  };
  std::vector<Delivery> deliveries;
  const auto deliver_sum = [&](const Member& to, std::uint64_t from, std::uint64_t at) {
    std::vector<const Content*> contents;
    for (const Member& m : members) contents.push_back(&content(m.call->process, m.send));
    auto pieces = combined_pieces(contents, from, from + part, kind.type, kind.op);
    deliveries.push_back({&to, at, from, std::move(pieces)});
  };
  for (const Member& to : members) {
    const auto rank = static_cast<std::uint64_t>(to.rank);
    switch (kind.kind) {
      case CollectiveKind::AllReduce:
        deliver_sum(to, 0, 0);
        break;
      case CollectiveKind::Reduce:
        if (to.rank == root) deliver_sum(to, 0, 0);
        break;
      case CollectiveKind::ReduceScatter:
        deliver_sum(to, rank * part, part_offset(to.send, to.recv, to.rank, part));
        break;
      case CollectiveKind::Broadcast: {
        const Member& from = members[static_cast<std::size_t>(root)];
        deliveries.push_back({&to, 0, 0, sent(from, 0, part)});
        break;
      }
      case CollectiveKind::AllGather:
      case CollectiveKind::Gather:
        if (kind.kind == CollectiveKind::Gather && to.rank != root) break;
        for (std::uint64_t i = 0; i < n; ++i) {
          const Member& from = members[i];
          const bool in_place = from.send == from.recv &&
                                (kind.kind == CollectiveKind::AllGather || from.rank == root);
          const std::uint64_t offset = in_place ? i * part : 0;
          deliveries.push_back({&to, i * part, offset, sent(from, offset, part)});
        }
        break;
      case CollectiveKind::AllToAll:
        for (std::uint64_t i = 0; i < n; ++i) {
          deliveries.push_back({&to, i * part, rank * part, sent(members[i], rank * part, part)});
        }
        break;
      case CollectiveKind::Scatter: {
        const Member& from = members[static_cast<std::size_t>(root)];
        const bool in_place = to.send == to.recv && to.rank == root;
        deliveries.push_back(
            {&to, in_place ? rank * part : 0, rank * part, sent(from, rank * part, part)});
        break;
      }
    }
  }
  for (const Delivery& delivery : deliveries) {
    const std::uint32_t process = delivery.to->call->process;
    content(process, delivery.to->recv).copy(delivery.pieces, delivery.from_at, delivery.at, part);
  }
  for (const Delivery& delivery : deliveries) {
    const std::uint32_t process = delivery.to->call->process;
    expect(process, delivery.to->recv, delivery.at, delivery.at + part, steps[process]);
  }
}

}  // namespace foretrace::hw
