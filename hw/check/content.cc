#include "hw/check/content.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "hw/cuda/hash.h"

namespace foretrace::hw {
namespace {

constexpr std::size_t kMaxTerms = 64;  // what the checking kernel takes

/// Integers up to 2^bits are exact; 0: an integer type, which wraps and is always exact.
int exact_bits(DataType type) {
  switch (type) {
    case DataType::Float16:
      return 11;
    case DataType::BFloat16:
      return 8;
    case DataType::Float32:
      return 24;
    case DataType::Float64:
      return 53;
    case DataType::Int8:
    case DataType::Int32:
    case DataType::Int64:
    case DataType::Float8E4M3:
    case DataType::Float8E5M2:
    case DataType::Float4E2M1:
      return 0;
  }
  return 0;
}

/// Every partial sum is a multiple of the terms' common power of two and has few enough bits.
bool sum_is_exact(const Value& value) {
  const int bits = exact_bits(value.type);
  double largest = 0;
  int common = 1000;  // exponent of the power of two that divides every factor
  for (const Term& term : value.terms) {
    largest += std::abs(term.factor) * kPatternMax;
    int exponent = 0;
    double mantissa = std::frexp(term.factor, &exponent);
    while (mantissa != std::floor(mantissa)) {
      mantissa *= 2;
      --exponent;
    }
    common = std::min(common, exponent);
  }
  if (bits == 0) return common >= 0 && largest < 0x1p53;
  const double highest = value.type == DataType::Float16 ? 65504 : 1e30;
  const int lowest_exponent = value.type == DataType::Float16 ? -14 : -100;
  return largest <= std::ldexp(1, bits + common) && largest < highest && common > lowest_exponent;
}

void add_term(Value& sum, const Term& term) {
  const auto same = std::ranges::find_if(sum.terms, [&](const Term& known) {
    return known.seed == term.seed && known.shift == term.shift;
  });
  if (same == sum.terms.end()) {
    sum.terms.push_back(term);
  } else {
    same->factor += term.factor;
  }
}

std::optional<Value> sum_of(const std::vector<Value>& parts, double divide_by) {
  Value sum;
  sum.type = parts.front().type;
  for (const Value& part : parts) {
    if (part.combine != RedOp::Sum) return std::nullopt;
    for (const Term& term : part.terms) add_term(sum, term);
  }
  if (!sum_is_exact(sum)) return std::nullopt;
  for (Term& term : sum.terms) term.factor /= divide_by;
  if (sum.terms.size() > kMaxTerms || !sum_is_exact(sum)) return std::nullopt;
  return sum;
}

bool is_power_of_two(std::size_t n) { return (n & (n - 1)) == 0; }

std::int64_t element_bytes(DataType type) { return static_cast<std::int64_t>(size_of(type).count); }

}  // namespace

std::optional<Value> combined(const std::vector<Value>& parts, RedOp op) {
  for (const Value& part : parts) {
    if (part.type != parts.front().type) return std::nullopt;
  }
  const bool is_integer = exact_bits(parts.front().type) == 0;
  if (op == RedOp::Sum) return sum_of(parts, 1);
  if (op == RedOp::Avg) {
    if (is_integer || !is_power_of_two(parts.size())) return std::nullopt;  // rounding
    return sum_of(parts, static_cast<double>(parts.size()));
  }
  Value result{parts.front().type, op, {}};
  for (const Value& part : parts) {
    const bool plain = part.terms.size() == 1 && part.terms.front().factor == 1;
    if (!plain) return std::nullopt;
    result.terms.push_back(part.terms.front());
  }
  const double largest =
      op == RedOp::Prod ? std::pow(kPatternMax, static_cast<double>(parts.size())) : kPatternMax;
  const int bits = exact_bits(result.type);
  const bool exact = bits == 0 ? largest < 0x1p53 : largest <= std::ldexp(1, bits);
  if (!exact || result.terms.size() > kMaxTerms) return std::nullopt;
  return result;
}

double element_of(const Value& value, std::uint64_t index) {
  double result = 0;
  bool first = true;
  for (const Term& term : value.terms) {
    const auto at = static_cast<std::uint64_t>(static_cast<std::int64_t>(index) + term.shift);
    const double x = term.factor * pattern_value(term.seed, at);
    if (first) {
      result = x;
    } else if (value.combine == RedOp::Prod) {
      result *= x;
    } else if (value.combine == RedOp::Min) {
      result = std::min(result, x);
    } else if (value.combine == RedOp::Max) {
      result = std::max(result, x);
    } else {
      result += x;
    }
    first = false;
  }
  return result;
}

std::vector<Piece> Content::within(std::uint64_t begin, std::uint64_t end) const {
  std::vector<Piece> result;
  for (const Piece& piece : pieces_) {
    if (piece.end <= begin || piece.begin >= end) continue;
    result.push_back({std::max(piece.begin, begin), std::min(piece.end, end), piece.value});
  }
  return result;
}

std::optional<Value> Content::value_of(std::uint64_t begin, std::uint64_t end) const {
  const auto pieces = within(begin, end);
  if (pieces.size() != 1 || pieces[0].begin != begin || pieces[0].end != end) return std::nullopt;
  return pieces[0].value;
}

void Content::forget(std::uint64_t begin, std::uint64_t end) {
  std::vector<Piece> left;
  for (const Piece& piece : pieces_) {
    if (piece.begin < begin) left.push_back({piece.begin, std::min(piece.end, begin), piece.value});
    if (piece.end > end) left.push_back({std::max(piece.begin, end), piece.end, piece.value});
  }
  pieces_ = std::move(left);
}

void Content::set(Piece piece) {
  if (piece.begin >= piece.end) return;
  forget(piece.begin, piece.end);
  const auto at = std::ranges::lower_bound(pieces_, piece.begin, {}, &Piece::begin);
  const auto placed = pieces_.insert(at, std::move(piece));
  // Equal neighbours become one, or pieces would multiply.
  if (placed != pieces_.begin()) {
    const auto before = std::prev(placed);
    if (before->end == placed->begin && before->value == placed->value) {
      before->end = placed->end;
      pieces_.erase(placed);
    }
  }
}

void Content::copy(const std::vector<Piece>& pieces, std::uint64_t from, std::uint64_t to,
                   std::uint64_t size) {
  forget(to, to + size);
  const std::int64_t moved = static_cast<std::int64_t>(to) - static_cast<std::int64_t>(from);
  for (Piece piece : pieces) {
    const std::int64_t element = element_bytes(piece.value.type);
    piece.begin = static_cast<std::uint64_t>(static_cast<std::int64_t>(piece.begin) + moved);
    piece.end = static_cast<std::uint64_t>(static_cast<std::int64_t>(piece.end) + moved);
    const bool aligned = moved % element == 0 &&
                         static_cast<std::int64_t>(piece.begin) % element == 0 &&
                         static_cast<std::int64_t>(piece.end) % element == 0;
    if (!aligned) continue;  // elements would be cut: unknown
    for (Term& term : piece.value.terms) term.shift -= moved / element;
    set(std::move(piece));
  }
}

std::vector<Piece> combined_pieces(const std::vector<const Content*>& contents, std::uint64_t begin,
                                   std::uint64_t end, DataType type, RedOp op) {
  std::set<std::uint64_t> cuts{begin, end};
  for (const Content* content : contents) {
    for (const Piece& piece : content->within(begin, end)) {
      cuts.insert(piece.begin);
      cuts.insert(piece.end);
    }
  }
  Content result;  // joins equal neighbours
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    const std::uint64_t from = *cut;
    const std::uint64_t to = *std::next(cut);
    std::vector<Value> parts;
    for (const Content* content : contents) {
      const auto value = content->value_of(from, to);
      if (value && value->type == type) parts.push_back(*value);
    }
    if (parts.size() != contents.size()) continue;
    if (const auto value = combined(parts, op)) result.set({from, to, *value});
  }
  return result.pieces();
}

}  // namespace foretrace::hw
