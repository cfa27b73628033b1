// foretrace explain-kernel for attention, forward: causal prefill, or one query against a cache.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/machine/machine.h"

namespace foretrace {

struct AttentionKernel {
  std::string name;            ///< of attention_names()
  std::string tokens;          ///< of a sequence, or in the cache: "8192"
  std::int64_t batch = 1;      ///< sequences
  std::uint32_t heads = 32;    ///< of queries
  std::uint32_t kv_heads = 0;  ///< of keys and values; 0: as many
  std::uint32_t width = 128;   ///< of a head
};

std::vector<std::string> attention_names();

/// Its time in 16 bits, what it is made of, the parameters that decide it, and each term's part, as
/// text or as JSON. Throws UsageError for sizes that are none.
std::string explain_attention(const Machine& machine, const AttentionKernel& kernel, bool json);

}  // namespace foretrace
