// A captured step as a program of operations, as an ordinary scenario is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/base/text/diagnostic.h"
#include "scenarios/captured/record.h"
#include "scenarios/program/program.h"

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
  Program program;
  std::string script_digest;       ///< of the records; empty: not known
  Memory memory;                   ///< of the rank that needs most
  std::vector<std::string> notes;  ///< what was assumed or left out, a sentence each
};

/// The region runs eight times in two turns of four, each turn with a device_synchronize at its
/// end; the second turn is what training goes on with.
/// Name, environment, network and the like are those of `head`. All operations stand at `at`.
Expansion expand(const CapturedStep& step, const Program& head = {}, const SourceSpot& at = {});

}  // namespace foretrace::captured
