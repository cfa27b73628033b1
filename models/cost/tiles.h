// Products of a GPU whose own kernels nobody measured: tiles of a few sizes over its SMs, by the
// facts of its datasheet and ratios that public tables of other GPUs showed (`foretrace accuracy
// --transfer`).
#pragma once

#include <cstdint>

#include "models/cost/kernel.h"

namespace foretrace::cost {

/// What the machine contributes: facts of the GPU, and ratios (tiles.*).
struct TileSpeeds {
  double sms = 1;
  double peak = 1;        ///< flop/s of the type, all SMs
  double per_watt = 0;    ///< flop/s of half precision over the board's power
  double memory = 1;      ///< bytes/s, as the datasheet has it
  double cache_size = 1;  ///< bytes
  double clock = 1;       ///< Hz
  double share = 1;       ///< of the peak that large tiles reach
  double power = 0;       ///< what each flop/s a watt beyond `free` costs of that
  double free = 1;        ///< flop/s a watt that cost nothing
  double memory_share = 1;
  double cache = 1;   ///< bytes that an SM gets of the level-2 cache in a clock
  double kept = 1;    ///< of the level-2 cache's size, what a product keeps there between turns
  double edge = 0;    ///< what smaller tiles lose
  double smooth = 0;  ///< how much of an unfilled last wave is not lost
  double in_flight =
      1;             ///< of the memory's bandwidth, what SMs ask for: all of them, so many times
  double norm = 4;   ///< arithmetic, cache and memory beside each other: exponent of their norm
  double start = 0;  ///< s, of a product that computes hardly anything
  double wave = 0;   ///< s, what each wave takes beside its arithmetic
  double sum = 0;    ///< s, of the kernel that sums parts of k
};

/// Facts and ratios that this takes; whether the machine has them.
bool has_tiles(const Machine& machine);
/// The fact that is the peak of products of this type.
Param peak_of(DataType type, bool tf32 = false);
TileSpeeds read_tile_speeds(Reading& read, DataType type, bool tf32 = false);

struct TileTime {
  double seconds = 0;  ///< alone, at the rested clock
  double blocks = 1, waves = 1;
  double in_waves = 0;  ///< s, of `seconds`
};
struct TileShape {
  double m = 1, n = 1, k = 1, batch = 1;
  double bytes = 2;           ///< of an operand's element
  double result_bytes = 2;    ///< of the result's
  double cached = 1;          ///< of the operands, at most: what the level-2 cache still has
  bool weights_cold = false;  ///< b comes from memory, as in tables that were measured so
  bool accumulates = false;
};
/// The fastest of tiles and splits, as a library chooses.
TileTime tile_time(const TileShape& shape, const TileSpeeds& speeds);

/// What such a product costs on an idle GPU.
KernelCost by_facts(Reading& read, const Product& product);

}  // namespace foretrace::cost
