// Why NCCL does an operation as it does: the candidates with their prices, what is wrong with the
// others, and how the winner becomes a kernel. As text, JSON and CSV.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/machine/reading.h"
#include "models/nccl/rules/p2p.h"
#include "models/nccl/rules/plan.h"
#include "models/nccl/rules/tuning.h"
#include "models/nccl/time/terms.h"

namespace foretrace::nccl {

/// What is asked: a collective by NCCL's nBytes, which is nccl-tests' size, or a send/recv.
struct Question {
  std::string op;                      ///< "all_reduce", "send_recv", as scenarios name them
  std::optional<CollectiveKind> kind;  ///< none: send/recv
  Bytes size;
  DataType type = DataType::Float32;
  std::string type_name = "float32";
  RedOp red_op = RedOp::Sum;
  std::string red_op_name = "sum";
  bool registered = false;  ///< its buffers
};

/// What was asked for beside the operations.
struct Given {
  std::vector<std::string> environment;  ///< NAME=VALUE, as the user gave them
  bool no_nvls = false;                  ///< the machine's parameter switches NVLS off
  std::string link = {};                 ///< what the GPUs of a node talk over: "PCIe 4.0 x16"
  std::string gpu = {};                  ///< where it has no generation of NVIDIA's
};

/// How long it takes on a machine, alone, once all ranks have arrived, and what decides that.
struct TimeExplanation {
  CollectiveTime time;
  std::vector<Share> shares;  ///< of its seconds; empty for NCCL's own price
};

struct Explanation {
  Question question;
  Tuning tuning;
  Given given;
  std::vector<Candidate> candidates;  ///< empty for what is made of sends and receives
  std::optional<Plan> plan;           ///< of a collective that is priced
  std::optional<Transfer> transfer;   ///< of one send with its receive
  std::uint32_t kernel_channels = 1;  ///< CTAs
  std::uint32_t kernel_threads = 1;
  std::optional<TimeExplanation> time;  ///< explain_time(), where a machine was asked about
};

/// The operations that can be asked about, and what they are.
const std::vector<std::pair<std::string, std::optional<CollectiveKind>>>& operations();

/// Throws UsageError for sizes that the operation cannot have.
Explanation explain(const Question& question, Tuning tuning, const Given& given = {});

std::string explain_text(const Explanation& explanation);
std::string explain_json(const Explanation& explanation);
std::string explain_csv(const Explanation& explanation);

/// One call of a group. Operations alike are chosen for together; all share one kernel's channels.
struct GroupedCall {
  Question question;
  std::optional<Plan> plan;          ///< of a collective that is priced
  std::optional<Transfer> transfer;  ///< of one send with its receive
  std::uint32_t channels = 1;        ///< that it takes of the kernel
};

struct GroupExplanation {
  Tuning tuning;
  Given given;
  std::vector<GroupedCall> calls;
  std::uint32_t kernel_channels = 1;  ///< CTAs
  std::uint32_t kernel_threads = 1;
};

/// The operations between one ncclGroupStart and ncclGroupEnd on one communicator. Every send/recv
/// is to the next rank. Throws UsageError for sizes that an operation cannot have.
GroupExplanation explain_group(const std::vector<Question>& questions, Tuning tuning,
                               const Given& given = {});

std::string explain_text(const GroupExplanation& explanation);
std::string explain_json(const GroupExplanation& explanation);
std::string explain_csv(const GroupExplanation& explanation);

/// Parts of the size, one for each rank that has its own; throws UsageError when they are no whole
/// elements.
std::uint64_t parts_of(const Question& question, std::uint32_t ranks);
/// Whether its buffers are registered, and NCCL could use that. LL and LL128 do not.
bool goes_directly(const Question& question, const Tuning& tuning);

namespace words {
std::string size_text(std::uint64_t bytes);
std::string machine_text(const Tuning& tuning, const Given& given);
}  // namespace words

}  // namespace foretrace::nccl
