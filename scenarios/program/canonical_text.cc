// Program::hash is the digest of this text, so it holds everything that decides what is run and
// nothing else: no names, labels, files or lines. Two scenarios that run the same hash the same.
#include <fmt/format.h>

#include "scenarios/program/op_members.h"
#include "scenarios/program/program.h"

namespace foretrace {
namespace {

std::string text(const Expr& e) { return e.to_string(); }
std::string text(const BytesExpr& e) { return e.expr.to_string() + "B"; }
std::string text(const DurationExpr& e) { return e.expr.to_string() + "ps"; }
std::string text(DataType type) { return fmt::format("t{}", static_cast<int>(type)); }
std::string text(RedOp op) { return fmt::format("r{}", static_cast<int>(op)); }
std::string text(KernelKind kind) { return std::to_string(static_cast<unsigned>(kind)); }
std::string text(FrameworkWork work) { return std::to_string(static_cast<unsigned>(work)); }
std::string text(std::uint32_t n) { return std::to_string(n); }
std::string text(std::uint64_t n) { return std::to_string(n); }
template <class Tag>
std::string text(Id<Tag> id) {
  return fmt::format("#{}", id.value);
}
template <class Tag>
std::string text(const Ref<Tag>& ref) {
  return fmt::format("#{}+{}", ref.first.value, ref.index.to_string());
}
template <class T>
std::string text(const std::vector<T>& all) {
  std::string joined = "[";
  for (const T& one : all) joined.append(text(one)).append(" ");
  return joined + "]";
}

template <class T>
std::string text(const std::optional<T>& one) {
  return one ? text(*one) : "-";
}

/// What stands after an operation's name. What the language leaves out is left out here too:
/// a program hashes as it did before others could be written.
class Members {
 public:
  template <class T>
  void value(const char*, const T& member) {
    text_.append(" ").append(text(member));
  }
  void flag(const char* name, bool set) {
    if (set) text_.append(" ").append(name);
  }
  void number(const char* name, const Expr& expr) {
    if (expr != Expr{1}) text_.append(" ").append(name).append(text(expr));
  }
  const std::string& of_all() const { return text_; }

 private:
  std::string text_;
};

std::string members_of(const OpKind& kind) {
  Members members;
  for_each_member(kind, members);
  return members.of_all();
}

void append_block(std::string& out, const Block& block) {
  for (const Op& op : block) {
    out += kind_name(op.kind) + members_of(op.kind) + "\n";
    if (const Block* inner = block_of(op.kind)) {
      out += "{\n";
      append_block(out, *inner);
      out += "}\n";
    }
  }
}

void append_objects(std::string& out, const Program& program) {
  for (const Stream& s : program.streams) {
    out += fmt::format("stream {} {} {}\n", s.device, static_cast<int>(s.kind), s.priority);
  }
  for (const Event& e : program.events) out += fmt::format("event {} {}\n", e.device, e.timing);
  for (const Buffer& b : program.buffers) {
    out +=
        fmt::format("buffer {} {} {} {} {}{}\n", static_cast<int>(b.memory), b.device, b.size.count,
                    static_cast<int>(b.contents), b.allocated_by_program, b.by_nccl ? " nccl" : "");
  }
  for (const Communicator& c : program.communicators) {
    out += fmt::format("communicator {}", static_cast<int>(c.init));
    for (const RankPlace& rank : c.members) out += fmt::format(" {}.{}", rank.process, rank.device);
    out += "\n";
  }
  for (const CommHandle& h : program.comms) {
    out += fmt::format("handle {} {}\n", h.communicator, h.device);
  }
  out += fmt::format("signals {} barriers {}\n", program.signals.size(), program.barriers.size());
  if (!program.graphs.empty()) out += fmt::format("graphs {}\n", program.graphs.size());
}

}  // namespace

std::string canonical_text(const Program& program) {
  std::string out = fmt::format("foretrace program 1\nnodes {} processes {} devices {} warmup {}\n",
                                program.nodes, program.processes, program.devices, program.warmup);
  if (program.placement != Placement::Nodewise) out += "placement round_robin\n";
  for (const auto& [name, value] : program.environment) {
    out += fmt::format("environment {} {}={}\n", value.size(), name, value);
  }
  append_objects(out, program);
  for (const HostThread& thread : program.threads) {
    out += "thread";
    for (const std::uint32_t process : thread.processes) out += fmt::format(" {}", process);
    out += "\n{\n";
    append_block(out, thread.ops);
    out += "}\n";
  }
  return out;
}

}  // namespace foretrace
