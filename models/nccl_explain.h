// Why NCCL does an operation as it does: the candidates with their prices, what is wrong with the
// others, and how the winner becomes a kernel. As text, JSON and CSV.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/nccl_p2p.h"
#include "models/nccl_plan.h"
#include "models/nccl_tuning.h"

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
  std::vector<std::string> environment;
};

struct NcclExplanation {
  NcclQuestion question;
  NcclTuning tuning;
  std::vector<NcclCandidate> candidates;  ///< empty for what is made of sends and receives
  std::optional<NcclPlan> plan;           ///< of a collective that is priced
  std::optional<NcclTransfer> transfer;   ///< of one send with its receive
  std::uint32_t kernel_channels = 1;      ///< CTAs
  std::uint32_t kernel_threads = 1;
};

/// The operations that can be asked about, and what they are.
const std::vector<std::pair<std::string, std::optional<CollectiveKind>>>& nccl_operations();

/// Throws UsageError for sizes that the operation cannot have.
NcclExplanation nccl_explain(const NcclQuestion& question, NcclTuning tuning);

std::string nccl_explain_text(const NcclExplanation& explanation);
std::string nccl_explain_json(const NcclExplanation& explanation);
std::string nccl_explain_csv(const NcclExplanation& explanation);

}  // namespace foretrace
