// A GPU whose own kernels nobody measured: its datasheet's facts, and ratios that public tables of
// other GPUs showed (`foretrace accuracy --transfer`), as speeds of tiles over its SMs.
#pragma once

#include "models/cost/products/time.h"

namespace foretrace::products {

struct GpuFacts {
  double sms = 1;
  double peak = 1;  ///< flop/s of the type, all SMs
  /// Bytes of operands for each operation at that peak, over half precision's: units that ask for
  /// less lose less by small tiles.
  double fed = 1;
  double per_watt = 0;    ///< flop/s of half precision over the board's power
  double memory = 1;      ///< bytes/s, as the datasheet has it
  double cache_size = 1;  ///< bytes
  double clock = 1;       ///< Hz
};

/// Parameters tiles.*.
struct TileRatios {
  double share = 1;   ///< of the peak that large tiles reach
  double power = 0;   ///< what each flop/s a watt beyond `free` costs of that
  double free = 1;    ///< flop/s a watt that cost nothing
  double memory = 1;  ///< of the memory's bandwidth
  double cache = 1;   ///< bytes that an SM gets of the level-2 cache in a clock
  double start = 0;   ///< s, of a product that computes hardly anything
  double sum = 0;     ///< s, of the kernel that sums parts of k
  TileSpeeds tiles{.in_flight = 1, .kept = 1, .norm = 4};
};

/// Whether the machine has what these two read.
bool has_gpu_facts(const Machine& machine);
GpuFacts read_gpu_facts(Reading& read, Arithmetic arithmetic);
TileRatios read_tile_ratios(Reading& read);

/// The fact that is the peak of products of this type.
Param peak_of(Arithmetic arithmetic);

Speeds speeds_of(const GpuFacts& facts, const TileRatios& ratios);

}  // namespace foretrace::products
