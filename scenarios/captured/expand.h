// A captured step as an ordinary scenario: text that can be read, changed, simulated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/captured/record.h"

namespace foretrace::captured {

/// A record and the ranks that do the same.
struct RankRecord {
  Record record;
  std::vector<std::int64_t> stands_for;  ///< its own rank included; ascending
};

struct CapturedStep {
  std::vector<RankRecord> ranks;  ///< together they stand for all ranks, each once
  std::int64_t world = 1;
};

struct Expansion {
  std::string text;  ///< the scenario: everything below its `name:`
  Memory memory;     ///< of the rank that needs most
  std::vector<std::string> notes;  ///< what was assumed or left out, a sentence each
};

/// The region runs eight times in two turns of four, each turn with a device_synchronize at its
/// end; the second turn is what training goes on with.
Expansion expand(const CapturedStep& step);

}  // namespace foretrace::captured
