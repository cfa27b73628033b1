// An exchange in which every rank sends every other one another size. NCCL and PyTorch make it of
// sends and receives in one group, and so it reads: what `from` and `to` mean is filled in for
// each.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/base/values/range_check.h"
#include "scenarios/lower/process_group_call.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMostSharingRanks = 1024;
constexpr std::size_t kMostListed = 64;  // processes whose ranks follow no rule

/// process == p ? rank : ..., for each.
Expr listed(const std::vector<std::pair<std::uint32_t, std::int64_t>>& ranks) {
  using enum Expr::Op;
  std::vector<Expr::Instruction> code{{Constant, 0}};
  for (const auto& [process, rank] : ranks) {
    code.insert(code.end(),
                {{Variable, 0}, {Constant, process}, {Equal}, {Constant, rank}, {Mul}, {Add}});
  }
  return Expr::from_postfix(std::move(code)).value_or(Expr{0});
}

/// The rank of the process that the operation runs in.
Expr own_rank(OpFields& fields, const CommRef& comm, std::string_view key) {
  const Program& program = fields.program();
  const VariableDomain& domain = fields.reader().domain;
  const Expr device = device_index(fields.reader(), comm);
  if (program.processes == 1 && fields.communicator_of(comm).members.size() == program.devices) {
    return device;
  }
  if (!device.is_constant()) {
    fields.reader().problems.error(fields.where(key),
                                   "which rank this is must follow from the process alone",
                                   "one operation for each device, with its number as the index");
    return Expr{0};
  }
  std::vector<std::pair<std::uint32_t, std::int64_t>> ranks;
  std::vector<std::int64_t> variables(domain.loops.size() + 1, 0);
  for (const std::uint32_t process : domain.processes) {
    variables[0] = process;
    const CommHandle& handle = program.comms[comm.resolve(variables).value];
    const auto& members = program.communicators[handle.communicator].members;
    const auto own = std::ranges::find(members, RankPlace{process, handle.device});
    ranks.emplace_back(process, own == members.end() ? 0 : own - members.begin());
  }
  const auto is_own = [](const auto& pair) { return pair.first == pair.second; };
  if (std::ranges::all_of(ranks, is_own)) return *Expr::from_postfix({{Expr::Op::Variable, 0}});
  const auto is_first = [&](const auto& pair) { return pair.second == ranks.front().second; };
  if (std::ranges::all_of(ranks, is_first)) return Expr{ranks.front().second};
  if (ranks.size() > kMostListed) {
    fields.reader().problems.error(
        fields.where(key),
        fmt::format("the ranks of more than {} processes that are not numbered as these",
                    kMostListed),
        "put it into a 'when' for each part");
    return Expr{0};
  }
  return listed(ranks);
}

struct Keys {
  std::string_view send, recv, send_name, recv_name;
};

/// The transfers from and to each rank, as ncclSend and ncclRecv, into `group`.
void read_exchange(OpFields& fields, const CommRef& comm, std::string_view comm_key,
                   const StreamRef& stream, const Keys& keys, Lowering& inner) {
  MapReader& map = fields.map();
  for (const std::string_view key : {keys.send, keys.recv, std::string_view{"size"}}) {
    static_cast<void>(map.required(key));
  }
  const DataType type = fields.required_type();
  const std::int64_t ranks = rank_count(fields, comm);
  if (!fields.is_sound()) return;
  if (ranks > kMostSharingRanks) {
    fields.reader().problems.error(
        fields.where(comm_key),
        fmt::format("{} ranks: at most {} exchange in one operation", ranks, kMostSharingRanks));
    return;
  }
  const Expr own = own_rank(fields, comm, comm_key);
  auto& bound = fields.reader().bound;
  for (std::int64_t peer = 0; peer < ranks && fields.is_sound(); ++peer) {
    bound = {{"from", own}, {"to", Expr{peer}}};
    const BufferRef send = fields.buffer(keys.send, kDeviceMemory);
    const BytesExpr sent =
        fields.typed_size_up_to(fields.buffer_of(send).size, keys.send_name, type);
    bound = {{"from", Expr{peer}}, {"to", own}};
    const BufferRef recv = fields.buffer(keys.recv, kDeviceMemory);
    const BytesExpr got =
        fields.typed_size_up_to(fields.buffer_of(recv).size, keys.recv_name, type);
    bound.clear();
    const auto is_nothing = [](const BytesExpr& size) {
      return size.expr.is_constant() && size.expr.constant() == 0;
    };
    if (!is_nothing(sent)) inner.add(NcclSend{comm, stream, send, sent, type, Expr{peer}});
    if (!is_nothing(got)) inner.add(NcclRecv{comm, stream, recv, got, type, Expr{peer}});
  }
  bound.clear();
}

void read_nccl(OpFields& fields, Lowering& out) {
  constexpr Keys kKeys{"send_buffer", "recv_buffer", "the send buffer", "the receive buffer"};
  const CommRef comm = fields.comm();
  const StreamRef stream = stream_beside(fields, comm);
  Lowering inner = out.inside(out.add_nccl_group());
  read_exchange(fields, comm, "comm", stream, kKeys, inner);
}

void read_torch(OpFields& fields, Lowering& out) {
  constexpr Keys kKeys{"input", "output", "the input", "the output"};
  GroupCall call = read_call(fields, out);
  read_async(fields, call);
  begin_call(fields.group_of(call.comm).initialises, call, out);
  Lowering inner = out.inside(out.add_nccl_group());
  read_exchange(fields, call.comm, "group", call.internal, kKeys, inner);
  end_call(call, out);
}

constexpr std::array kOps{
    LoweredSyntax{"nccl_all_to_all_v", "comm [stream] send_buffer recv_buffer size type",
                  "every rank sends every rank its own size: ncclSend and ncclRecv in one group",
                  read_nccl, "nccl_group"},
    LoweredSyntax{"all_to_all_v", "group [stream] input output size type [async] [work]",
                  "torch: all_to_all with parts of unequal size", read_torch},
};

}  // namespace

std::span<const LoweredSyntax> all_to_all_v_ops() { return kOps; }

}  // namespace foretrace
