// Program::hash is the digest of this text, so it holds everything that decides what is run and
// nothing else: no names, labels, files or lines. Two scenarios that run the same hash the same.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <concepts>

#include "scenarios/base/text/made_from.h"
#include "scenarios/program/op_members.h"
#include "scenarios/program/program.h"

namespace foretrace {
namespace {

void append_number(std::string& out, std::integral auto n) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), n).ptr;
  out.append(digits.data(), end);
}
void append(std::string& out, const Expr& e) {
  if (e.is_constant()) return append_number(out, e.constant());
  out += e.to_string();
}
void append(std::string& out, const BytesExpr& e) {
  append(out, e.expr);
  out += 'B';
}
void append(std::string& out, const DurationExpr& e) {
  append(out, e.expr);
  out += "ps";
}
void append(std::string& out, DataType type) {
  out += 't';
  append_number(out, static_cast<int>(type));
}
void append(std::string& out, Scales scales) {
  out += 's';
  append_number(out, static_cast<int>(scales));
}
void append(std::string& out, RedOp op) {
  out += 'r';
  append_number(out, static_cast<int>(op));
}
void append(std::string& out, KernelKind kind) { append_number(out, static_cast<unsigned>(kind)); }
void append(std::string& out, FrameworkWork work) {
  append_number(out, static_cast<unsigned>(work));
}
void append(std::string& out, std::uint32_t n) { append_number(out, n); }
void append(std::string& out, std::uint64_t n) { append_number(out, n); }
template <class Tag>
void append(std::string& out, Id<Tag> id) {
  out += '#';
  append_number(out, id.value);
}
template <class Tag>
void append(std::string& out, const Ref<Tag>& ref) {
  append(out, ref.first);
  out += '+';
  append(out, ref.index);
}
template <class T>
void append(std::string& out, const std::vector<T>& all) {
  out += '[';
  for (const T& one : all) {
    append(out, one);
    out += ' ';
  }
  out += ']';
}
void append(std::string& out, const std::string& text) { out += text; }
template <class T>
void append(std::string& out, const std::optional<T>& one) {
  if (!one) {
    out += '-';
    return;
  }
  append(out, *one);
}

/// What stands after an operation's name. What the language leaves out is left out here too:
/// a program hashes as it did before others could be written.
class Members {
 public:
  explicit Members(std::string& out) : out_{out} {}
  template <class T>
  void value(const char*, const T& member) {
    out_ += ' ';
    append(out_, member);
  }
  void flag(const char* name, bool set) {
    if (set) out_.append(" ").append(name);
  }
  void number(const char* name, const Expr& expr) {
    if (expr == Expr{1}) return;
    out_.append(" ").append(name);
    append(out_, expr);
  }

 private:
  std::string& out_;
};

void append_block(std::string& out, const Block& block) {
  for (const Op& op : block) {
    out += kind_name(op.kind);
    for_each_member(op.kind, Members{out});
    out += '\n';
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

std::string hash_of(const Program& program) { return digest_of(canonical_text(program)); }

}  // namespace foretrace
