#include "models/cost/attention.h"

#include <algorithm>
#include <cmath>

#include "models/constants/constants.h"

namespace foretrace::cost {
namespace {

using enum Param;

constexpr double kElement = 2;  // bytes of an element
constexpr double kTensors = 4;  // queries, keys, values, results: of a sequence's own as large
constexpr double kOfAPair = 4;  // flops for each element of a head: the score, and what it weighs

double rows_of(const AttentionWork& work) {
  return work.bytes / (kTensors * kElement * work.width);
}

}  // namespace

bool has_attention_facts(const Machine& machine) {
  return machine.has(AttendsShare) && machine.has(GpuHalfFlops) && machine.has(GpuClock) &&
         machine.has(HbmBandwidth);
}

AttentionFacts read_attention_facts(Reading& read) {
  return {.sms = read.value(SmCount),
          .peak = read.rate(GpuHalfFlops),
          .memory = read.rate(HbmBandwidth),
          .clock = read.value(GpuClock) * 1e6};
}

AttentionRatios read_attention_ratios(Reading& read) {
  return {.start = read.seconds(AttendsStart),
          .share = read.value(AttendsShare),
          .vector = read.value(AttendsVector),
          .block = read.value(AttendsBlock),
          .tile = read.value(AttendsTile),
          .few = read.value(AttendsFew),
          .memory = read.value(AttendsMemory)};
}

double keys_of(const AttentionWork& work) {
  const double rows = rows_of(work);
  return rows > 0 ? work.flops / (kOfAPair * work.width * rows) : 0;
}

AttentionParts attention_parts(const AttentionWork& work, const AttentionFacts& facts,
                               const AttentionRatios& ratios) {
  static const double kRows = constant("attention.block_rows");
  static const double kSharp = constant("attention.few_step");
  const double keys = std::max(keys_of(work), 1e-9);
  // Tensor cores and the others work side by side, but not quite.
  const double tensor = kOfAPair * work.width / (facts.peak * ratios.share);
  const double vector = ratios.vector / (facts.clock * facts.sms);
  const double pair = std::hypot(tensor, vector);
  const double blocks = rows_of(work) / kRows * (1 + ratios.tile / keys);
  const double bound = 1 + std::pow(ratios.few / keys, kSharp);
  return {.start = ratios.start,
          .moved = work.bytes / (facts.memory * ratios.memory),
          .pairs = work.flops / (kOfAPair * work.width) * pair / bound,
          .blocks = blocks * ratios.block / (facts.clock * facts.sms) / bound,
          .tensor = tensor / pair,
          .vector = vector / pair};
}

double attention_time(const AttentionWork& work, const AttentionFacts& facts,
                      const AttentionRatios& ratios) {
  const AttentionParts parts = attention_parts(work, facts, ratios);
  return parts.start + parts.moved + parts.pairs + parts.blocks;
}

}  // namespace foretrace::cost
