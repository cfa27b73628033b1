// User buffer registration (ncclCommRegister): what is registered where NCCL cannot use it, and
// what is given back or freed wrongly. Every host thread's calls are walked as far as
// kMostRegistering allows; where several threads of a process register, their order is not written
// in the file, and only what does not depend on it is said.
#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "scenarios/check/check.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kMostRegistering = 20'000;  // of one thread of one process

bool registers(const Op& op) {
  return std::holds_alternative<NcclCommRegister>(op.kind) ||
         std::holds_alternative<NcclCommDeregister>(op.kind);
}

bool has_registrations(const Block& block) { return any_op(block, registers); }

class RegistrationCheck {
 public:
  RegistrationCheck(const Program& program, Problems& problems)
      : program_{program}, problems_{problems} {}

  void run() {
    std::map<std::uint32_t, int> registering;  // threads, by process
    for (const HostThread& thread : program_.threads) {
      if (!has_registrations(thread.ops)) continue;
      for (const std::uint32_t process : thread.processes) ++registering[process];
    }
    for (const HostThread& thread : program_.threads) {
      for (const std::uint32_t process : thread.processes) {
        const auto found = registering.find(process);
        if (found == registering.end()) continue;
        knows_order_ = found->second == 1;
        walk(thread, process);
      }
    }
    warn_of_ranks_without();
  }

 private:
  void walk(const HostThread& thread, std::uint32_t process) {
    in_force_.clear();
    std::uint64_t left = kMostRegistering;
    const bool whole = knows_order_ && has_registrations(thread.ops);
    ExecutionWalk{}.run(
        thread.ops, process, [&](const Block& block) { return whole || has_registrations(block); },
        [&](const Op& op, Variables v, Around) {
          if (const auto* one = std::get_if<NcclCommRegister>(&op.kind)) {
            add(op, *one, v, process);
          } else if (const auto* gone = std::get_if<NcclCommDeregister>(&op.kind)) {
            remove(op, *gone, v);
          } else if (const auto* destroyed = std::get_if<NcclCommDestroy>(&op.kind)) {
            const CommId comm = destroyed->comm.resolve(v);
            std::erase_if(in_force_,
                          [&](const auto& entry) { return entry.first.first == comm.value; });
          } else if (const auto* freed = std::get_if<Free>(&op.kind)) {
            check_free(op, freed->buffer.resolve(v).value);
          }
          return --left > 0;
        });
  }

  void add(const Op& op, const NcclCommRegister& one, Variables v, std::uint32_t process) {
    const CommHandle& handle = program_.comms[one.comm.resolve(v).value];
    const Buffer& buffer = program_.buffers[one.buffer.resolve(v).value];
    registered_[handle.communicator].insert({process, handle.device});
    example_.emplace(handle.communicator, &op);
    ++in_force_[{one.comm.resolve(v).value, one.buffer.resolve(v).value}];
    if (buffer.device != handle.device) {
      report(op, Severity::Error,
             fmt::format("buffer '{}' is on device {}, and this is the communicator of device {}",
                         buffer.name, buffer.device, handle.device));
      return;
    }
    const bool one_node = program_.nodes == 1;
    if (is_set("NCCL_LOCAL_REGISTER", "0")) {
      report(op, Severity::Warning, "with NCCL_LOCAL_REGISTER=0 NCCL registers nothing here");
    } else if (!buffer.by_nccl && one_node &&
               (program_.devices > 1 || !is_set("NCCL_LEGACY_CUDA_REGISTER", "1"))) {
      report(op, Severity::Warning,
             fmt::format("NCCL cannot give memory of cudaMalloc to other ranks: registering '{}' "
                         "changes nothing on one node",
                         buffer.name),
             program_.devices > 1 ? "declare it with memory: nccl"
                                  : "declare it with memory: nccl, or set "
                                    "NCCL_LEGACY_CUDA_REGISTER: 1");
    }
  }

  void remove(const Op& op, const NcclCommDeregister& gone, Variables v) {
    const std::pair key{gone.comm.resolve(v).value, gone.buffer.resolve(v).value};
    const auto found = in_force_.find(key);
    if (found != in_force_.end()) {
      if (--found->second == 0) in_force_.erase(found);
      return;
    }
    if (!knows_order_) return;
    report(op, Severity::Error,
           fmt::format("buffer '{}' is not registered with '{}' here: NCCL refuses this call",
                       program_.buffers[key.second].name, name_of(key.first)),
           "each nccl_comm_deregister takes back one nccl_comm_register");
  }

  void check_free(const Op& op, std::uint32_t buffer) {
    if (!knows_order_) return;
    for (const auto& [key, count] : in_force_) {
      if (key.second != buffer) continue;
      report(op, Severity::Error,
             fmt::format("buffer '{}' is freed here while it is registered with '{}': its peers "
                         "keep it mapped",
                         program_.buffers[buffer].name, name_of(key.first)),
             "call nccl_comm_deregister first");
      return;
    }
  }

  /// NCCL takes the direct way only where all ranks offer their memory.
  void warn_of_ranks_without() {
    for (const auto& [id, places] : registered_) {
      const Communicator& communicator = program_.communicators[id];
      for (std::size_t rank = 0; rank < communicator.members.size(); ++rank) {
        if (places.contains(communicator.members[rank])) continue;
        report(*example_.at(id), Severity::Warning,
               fmt::format("rank {} of '{}' registers no buffer, and others do", rank,
                           communicator.name),
               "register the buffers of an operation on all ranks: the result is undefined else");
        break;
      }
    }
  }

  const std::string& name_of(std::uint32_t comm) const {
    return program_.communicators[program_.comms[comm].communicator].name;
  }
  bool is_set(const char* name, const char* value) const {
    const auto found = program_.environment.find(name);
    return found != program_.environment.end() && found->second == value;
  }
  /// Loops and ranks run the same line: it is said once.
  void report(const Op& op, Severity severity, std::string message, std::string hint = {}) {
    if (!said_.insert({&op, severity}).second) return;
    problems_.add(op.line, op.column, severity, std::move(message), std::move(hint));
  }

  const Program& program_;
  Problems& problems_;
  bool knows_order_ = true;
  /// By CommId and BufferId, of the thread that is walked.
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> in_force_;
  std::map<std::uint32_t, std::set<RankPlace>> registered_;  ///< by communicator
  std::map<std::uint32_t, const Op*> example_;
  std::set<std::pair<const Op*, Severity>> said_;
};

}  // namespace

void check_registrations(const Program& program, Problems& problems) {
  if (!any_op(program, registers)) return;
  RegistrationCheck{program, problems}.run();
}

}  // namespace foretrace
