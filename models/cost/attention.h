// Attention, forward, on a GPU whose own kernels nobody measured: its datasheet's facts, and ratios
// that public tables of other GPUs showed (`foretrace accuracy --transfer`). With few queries for
// each key (decoding) on any GPU: memory alone bounds it.
#pragma once

#include "models/machine/reading.h"

namespace foretrace::cost {

struct AttentionWork {
  double flops = 0;
  double bytes = 0;  ///< queries, keys, values and results
  double width = 0;  ///< of a head
  friend auto operator<=>(const AttentionWork&, const AttentionWork&) = default;
};

struct AttentionFacts {
  double sms = 1;
  double peak = 1;    ///< flop/s of half precision
  double memory = 1;  ///< bytes/s
  double clock = 1;   ///< Hz
};

/// Parameters attends.*.
struct AttentionRatios {
  double start = 0;   ///< s, of one that computes hardly anything
  double share = 1;   ///< of the peak
  double vector = 0;  ///< clocks of an SM for a query and a key: exponentials, sums
  double block = 0;   ///< clocks of an SM for a block of queries, beside its keys
  double tile = 0;    ///< keys for each query at which there are twice the blocks: unfilled ones
  double few = 0;     ///< keys for each query below which memory alone bounds
  double memory = 1;  ///< of its bandwidth
};

/// Whether the machine has what these two read.
bool has_attention_facts(const Machine& machine);
AttentionFacts read_attention_facts(Reading& read);
AttentionRatios read_attention_ratios(Reading& read);

/// Keys that a query looks at, in the mean, where a sequence attends to itself.
double keys_of(const AttentionWork& work);

/// What such a kernel's seconds are the sum of.
struct AttentionParts {
  double start = 0;
  double moved = 0;               ///< bytes over what is reached of the memory's bandwidth
  double pairs = 0;               ///< of a query and a key
  double blocks = 0;              ///< of queries, beside their keys
  double tensor = 0, vector = 0;  ///< of a pair: what each would take alone, over both together
};
AttentionParts attention_parts(const AttentionWork& work, const AttentionFacts& facts,
                               const AttentionRatios& ratios);

/// Seconds.
double attention_time(const AttentionWork& work, const AttentionFacts& facts,
                      const AttentionRatios& ratios);

}  // namespace foretrace::cost
