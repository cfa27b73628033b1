#include "models/cost/products/registers.h"

#include <algorithm>
#include <array>

namespace foretrace::products {
namespace {

enum class Kind : std::uint8_t { Pairs, Odd, Float32, Simt };

/// Registers of a thread, and threads, of the kernels that leave some of an SM's.
struct Known {
  Kind kind;
  std::int64_t rows, columns, registers, threads;
};
constexpr std::array kKnown{
    Known{Kind::Pairs, 256, 128, 224, 256},  Known{Kind::Pairs, 128, 256, 232, 256},
    Known{Kind::Pairs, 128, 128, 232, 128},  Known{Kind::Pairs, 128, 64, 160, 128},
    Known{Kind::Pairs, 64, 128, 160, 128},   Known{Kind::Pairs, 256, 64, 232, 128},
    Known{Kind::Pairs, 64, 256, 240, 128},   Known{Kind::Pairs, 64, 64, 96, 128},
    Known{Kind::Odd, 256, 128, 232, 256},    Known{Kind::Odd, 128, 256, 232, 256},
    Known{Kind::Odd, 64, 64, 96, 128},       Known{Kind::Odd, 128, 64, 160, 128},
    Known{Kind::Odd, 64, 128, 160, 128},     Known{Kind::Float32, 32, 32, 80, 64},
    Known{Kind::Float32, 32, 64, 104, 64},   Known{Kind::Float32, 64, 32, 128, 64},
    Known{Kind::Float32, 128, 64, 224, 128}, Known{Kind::Float32, 64, 128, 224, 128},
    Known{Kind::Simt, 256, 128, 208, 256},   Known{Kind::Simt, 128, 256, 208, 256},
    Known{Kind::Simt, 128, 128, 208, 128},   Known{Kind::Simt, 128, 64, 120, 128},
    Known{Kind::Simt, 64, 64, 80, 128},      Known{Kind::Simt, 128, 32, 80, 128},
    Known{Kind::Simt, 32, 128, 96, 128}};

Kind kind_of(Family family, const Plan& plan) {
  if (family == Family::HalfPairs) return Kind::Pairs;
  if (family == Family::HalfOdd || family == Family::BrainOdd) return Kind::Odd;
  return plan.padded ? Kind::Simt : Kind::Float32;
}

}  // namespace

Registers registers_of(Family family, const Plan& plan, std::int64_t tiles, double sms) {
  const bool older = family == Family::HalfPairs || family == Family::HalfOdd ||
                     family == Family::BrainOdd || family == Family::Float32;
  if (!older || plan.resident <= 0) return {};
  const Kind kind = kind_of(family, plan);
  const auto* const known = std::ranges::find_if(kKnown, [&](const Known& one) {
    return one.kind == kind && one.rows == plan.tile_m && one.columns == plan.tile_n;
  });
  const std::int64_t most = kSmRegisters / plan.resident;
  Registers registers{.of_block = most};
  if (known != kKnown.end()) {
    registers.of_block = std::min(most, known->registers * known->threads);
  }
  const auto left_by = [&](std::int64_t blocks) {
    return kSmRegisters - blocks * registers.of_block;
  };
  const auto gpu = static_cast<std::int64_t>(sms);
  const std::int64_t last = tiles % (gpu * plan.resident);
  registers.room = left_by(plan.resident);
  registers.room_at_last = last == 0 ? registers.room : left_by((last + gpu - 1) / gpu);
  return registers;
}

}  // namespace foretrace::products
