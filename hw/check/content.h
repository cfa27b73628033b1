// What a buffer must hold while known data goes through a program: the data check's model. A piece
// of memory is a combination of patterns (hash.h) that the harness filled in before, or unknown.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/cuda/element.h"
#include "scenarios/program/ops.h"

namespace foretrace::hw {

/// `factor` times pattern `seed`, whose element index is the buffer's element index plus `shift`.
struct Term {
  std::uint32_t seed{};
  std::int64_t shift{};
  double factor = 1;
  friend bool operator==(const Term&, const Term&) = default;
};

/// All terms combined with `combine`; no term is zero.
struct Value {
  DataType type = DataType::Float32;
  RedOp combine = RedOp::Sum;
  std::vector<Term> terms;
  friend bool operator==(const Value&, const Value&) = default;
};

/// The value that every rank's `parts` make together, or nothing when it cannot be computed
/// exactly in the type: then a different order of additions would be no error.
std::optional<Value> combined(const std::vector<Value>& parts, RedOp op);

/// Element `index` of a value. Wraps as the integer types do.
double element_of(const Value& value, std::uint64_t index);

/// A stretch of bytes with one value.
struct Piece {
  std::uint64_t begin{};
  std::uint64_t end{};
  Value value;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// A buffer's known pieces, ordered, not overlapping; the rest is unknown.
class Content {
 public:
  const std::vector<Piece>& pieces() const { return pieces_; }
  /// The known pieces within [begin, end).
  std::vector<Piece> within(std::uint64_t begin, std::uint64_t end) const;
  /// The value of all of [begin, end), if it has one.
  std::optional<Value> value_of(std::uint64_t begin, std::uint64_t end) const;
  void forget(std::uint64_t begin, std::uint64_t end);
  void set(Piece piece);
  /// Takes over `pieces` of [from, from + size) to [to, to + size): what a copy does.
  void copy(const std::vector<Piece>& pieces, std::uint64_t from, std::uint64_t to,
            std::uint64_t size);

 private:
  std::vector<Piece> pieces_;
};

/// [begin, end) of all contents combined, element by element: known where all are and where the
/// result is exact. Contents of another type than `type` are unknown.
std::vector<Piece> combined_pieces(const std::vector<const Content*>& contents, std::uint64_t begin,
                                   std::uint64_t end, DataType type, RedOp op);

}  // namespace foretrace::hw
