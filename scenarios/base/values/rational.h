// Exact fractions without a bound. Boost's numbers stay in rational.cc: reading their headers takes
// a tenth of a translation unit's compile time. Whole numbers of 64 bits, which nearly all are,
// need none.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace foretrace {

/// A value: copies share what never changes. One that was moved from is only assigned or destroyed.
class Rational {
 public:
  Rational() : Rational{0} {}
  Rational(std::int64_t whole) : whole_{whole} {}  // NOLINT(google-explicit-constructor)
  Rational(std::int64_t numerator, std::int64_t denominator);
  /// digits * 10^exponent; `digits` are decimal, at least one.
  static Rational from_decimal(const std::string& digits, int exponent);

  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator-(const Rational& a, const Rational& b);
  friend Rational operator*(const Rational& a, const Rational& b);
  /// `b` is not 0.
  friend Rational operator/(const Rational& a, const Rational& b);
  friend std::strong_ordering operator<=>(const Rational& a, const Rational& b);
  friend bool operator==(const Rational& a, const Rational& b) { return (a <=> b) == 0; }

  bool is_whole() const;
  /// The largest whole number that is not above it.
  Rational floor() const;
  /// To the nearest whole number, halves away from zero; none beyond +-(2^63 - 1).
  std::optional<std::int64_t> rounded() const;
  Rational power(unsigned exponent) const;
  /// Of numerator and denominator together, about.
  std::size_t bits() const;
  double to_double() const;
  /// "3", "-1/3".
  std::string text() const;

 private:
  struct Exact;
  explicit Rational(Exact exact);
  /// Of the number, whatever it is kept as.
  Exact exact() const;
  bool is_small() const { return exact_ == nullptr; }

  std::int64_t whole_ = 0;
  std::shared_ptr<const Exact> exact_;  ///< null: it is whole_
};

}  // namespace foretrace
