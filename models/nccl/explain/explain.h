// Why NCCL does an operation as it does: the candidates with their prices, what is wrong with the
// others, and how the winner becomes a kernel. As text, JSON and CSV.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/nccl/rules/p2p.h"
#include "models/nccl/rules/plan.h"
#include "models/nccl/rules/tuning.h"

namespace foretrace {

/// What is asked: a collective by NCCL's nBytes, which is nccl-tests' size, or a send/recv.
struct NcclQuestion {
  std::string op;                      ///< "all_reduce", "send_recv", as scenarios name them
  std::optional<CollectiveKind> kind;  ///< none: send/recv
  Bytes size;
  DataType type = DataType::Float32;
  std::string type_name = "float32";
  RedOp red_op = RedOp::Sum;
  std::string red_op_name = "sum";
};

/// What was asked for beside the operations.
struct NcclGiven {
  std::vector<std::string> environment;  ///< NAME=VALUE, as the user gave them
  bool no_nvls = false;                  ///< the machine's parameter switches NVLS off
};

struct NcclExplanation {
  NcclQuestion question;
  NcclTuning tuning;
  NcclGiven given;
  std::vector<NcclCandidate> candidates;  ///< empty for what is made of sends and receives
  std::optional<NcclPlan> plan;           ///< of a collective that is priced
  std::optional<NcclTransfer> transfer;   ///< of one send with its receive
  std::uint32_t kernel_channels = 1;      ///< CTAs
  std::uint32_t kernel_threads = 1;
};

/// The operations that can be asked about, and what they are.
const std::vector<std::pair<std::string, std::optional<CollectiveKind>>>& nccl_operations();

/// Throws UsageError for sizes that the operation cannot have.
NcclExplanation nccl_explain(const NcclQuestion& question, NcclTuning tuning,
                             const NcclGiven& given = {});

std::string nccl_explain_text(const NcclExplanation& explanation);
std::string nccl_explain_json(const NcclExplanation& explanation);
std::string nccl_explain_csv(const NcclExplanation& explanation);

/// One call of a group. Operations alike are chosen for together; all share one kernel's channels.
struct NcclGroupedCall {
  NcclQuestion question;
  std::optional<NcclPlan> plan;          ///< of a collective that is priced
  std::optional<NcclTransfer> transfer;  ///< of one send with its receive
  std::uint32_t channels = 1;            ///< that it takes of the kernel
};

struct NcclGroupExplanation {
  NcclTuning tuning;
  NcclGiven given;
  std::vector<NcclGroupedCall> calls;
  std::uint32_t kernel_channels = 1;  ///< CTAs
  std::uint32_t kernel_threads = 1;
};

/// The operations between one ncclGroupStart and ncclGroupEnd on one communicator. Every send/recv
/// is to the next rank. Throws UsageError for sizes that an operation cannot have.
NcclGroupExplanation nccl_explain_group(const std::vector<NcclQuestion>& questions,
                                        NcclTuning tuning, const NcclGiven& given = {});

std::string nccl_explain_text(const NcclGroupExplanation& explanation);
std::string nccl_explain_json(const NcclGroupExplanation& explanation);
std::string nccl_explain_csv(const NcclGroupExplanation& explanation);

/// Parts of the size, one for each rank that has its own; throws UsageError when they are no whole
/// elements.
std::uint64_t nccl_parts(const NcclQuestion& question, std::uint32_t ranks);

namespace nccl_words {
std::string size_text(std::uint64_t bytes);
std::string machine_text(const NcclTuning& tuning, const NcclGiven& given);
}  // namespace nccl_words

}  // namespace foretrace
