// How long a product takes that is computed in a given way.
//
// nvjet's blocks stay on their SMs and compute tile after tile: time goes in waves of one tile per
// SM. Older kernels have a block for each tile, and several of them reside on an SM at once: time
// goes in waves of so many tiles per SM, and the last wave is as long as what is left for the
// fullest SM. A tile is k steps of arithmetic and of loading operands, which do not overlap
// entirely, and the store of its result. Beside it all operands pass the memory once. All of this
// is at the rested clock; under load the SMs' part takes longer.
#pragma once

#include "models/cost/products/product.h"

namespace foretrace::products {

/// Of an element of a part of k that is summed afterwards: parts are float32.
inline constexpr std::int64_t kPartBytes = 4;

/// One way to compute a product.
struct Plan {
  std::int64_t tile_m = 0, tile_n = 0;
  bool cooperative = false;  ///< both warp groups of a block work on one tile; else each on its own
  std::int64_t split = 1;    ///< parts of k, summed afterwards
  bool inside = false;       ///< summed by the blocks themselves, not by a kernel of its own
  std::int64_t resident = 0;  ///< tiles that an SM has at once; 0: persistent blocks, one tile each
  double slow = 1;            ///< how much longer a tile takes than its rates say
  /// CUTLASS' grids have whole groups of 2, 4 or 8 tiles along m. Blocks without a tile end at
  /// once, but two that have one may share an SM while others are idle.
  bool padded = false;
  double residual = 1;  ///< on the whole product's time, beside what the formula says (residual.h)

  /// Which sums the parts of k.
  bool has_second_kernel() const { return split > 1 && !inside; }
};

/// So many parts of this length make the whole; the last one may be shorter.
inline std::int64_t parts(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}

/// What tiles take of a GPU whose kernels nobody measured, beside its rates (facts.h).
struct TileSpeeds {
  double edge = 0;       ///< what a tile loses for each of its sides of 64; half for one of 128
  double smooth = 0;     ///< of an unfilled last wave, what is not lost
  double wave = 0;       ///< s, what each wave takes beside its arithmetic
  double in_flight = 0;  ///< all SMs could ask for so many times the memory's bandwidth
  double kept = 0;       ///< of the cache's size, what operands and results may take to stay there
  double norm = 0;  ///< arithmetic, loads and memory beside each other: exponent of their norm;
                    ///< 0: rates say all, and the rest of this nothing
};

/// What the machine contributes. Rates are those of all SMs at the rested clock, per second.
struct Speeds {
  Family family = Family::Half;  ///< whose kernels these are
  double sms = 1;
  double start = 0;             ///< s, from begin to end of a product that computes hardly anything
  double graph_start = 0;       ///< s, the same product behind itself in a CUDA graph
  double arithmetic = 1;        ///< flop/s as tiles grow large; more than the peak: part is hidden
  double arithmetic_apart = 1;  ///< the same where each warp group has a tile of its own
  double operands = 1;          ///< bytes/s from the level-2 cache into shared memory
  double results = 1;           ///< bytes/s of results out of registers
  double straddle = 0;          ///< rows that begin within a sector: longer by this for 64 x 64
  double across = 0;            ///< a transposed a takes longer by this share
  double cache = 1;             ///< bytes/s when all operands fit into the level-2 cache
  double cache_size = 1;        ///< bytes
  double memory = 1;            ///< bytes/s when they do not
  double split_start = 0;       ///< s, for the kernel that sums
  double split_rate = 1;        ///< bytes/s of parts that are summed
  double split_turn = 0;        ///< s, for each part that blocks add themselves, in turn
  double peak = 1;              ///< flop/s that the arithmetic units can do
  double fresh = 0;             ///< s, what operands cost that were written last
  double residents = 0;         ///< an SM with l of R resident blocks does (l/R)^this of its rate
  TileSpeeds tiles{};
  TermSet without{};  ///< terms that are left out

  bool takes(Term term) const { return !without.test(static_cast<std::size_t>(term)); }
};
Speeds read_speeds(Reading& read, Family family);
/// Whether the machine has what that reads: those kernels were measured.
bool has_speeds(const Machine& machine, Family family);
/// Of the kernels that a shape gets, or by the GPU's facts where those were not measured (facts.h).
Speeds read_speeds(Reading& read, const Shape& shape);

/// Where SMs have several tiles at once, the last wave has fewer.
struct LastWave {
  double share = 0;        ///< of the waves' time; 0: all waves are alike
  std::int64_t fewer = 0;  ///< SMs that have one tile less than the others
  double fewer_share = 1;  ///< what these take of its time
};

struct Times {
  /// s, each as much longer as the plan takes.
  double start = 0, arithmetic = 0, operands = 0, results = 0, memory = 0, split = 0;
  double cold = 0;  ///< s, for operands that the level-2 cache has not
  /// s; less than the sum, since memory and SMs work at once.
  double total = 0;
  Sizes sizes;
  std::int64_t tiles = 0;
  std::int64_t waves = 0;
  std::int64_t blocks = 0;  ///< waves' SMs: what one of them has at once counts as one
  LastWave last;
};
/// The tiles that nvjet's blocks occupy SMs for. Two blocks beside each other are a cluster, and
/// without a partner a tile has an empty one. Of 20,000 choices of cuBLAS 13.1 in
/// reports/measured/products hardly any makes a wave more so, and few pair an odd count below 18;
/// tall tiles are paired along n and others along m, else the other way, else not at all.
std::int64_t paired_tiles(const Shape& shape, const Plan& plan, double sms);

/// At `clock` times the rested clock.
Times time_of(const Shape& shape, const Plan& plan, const Speeds& speeds, double clock = 1,
              bool in_graph = false);

/// The part of the rested clock that is lost when a GPU has done such products for long: what the
/// arithmetic units are used, beyond what the power limit allows with these contents.
double lost_clock(Reading& read, const Shape& shape, double rested_seconds, const Speeds& speeds,
                  Contents contents);

}  // namespace foretrace::products
