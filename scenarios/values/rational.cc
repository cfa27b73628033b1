#include "scenarios/values/rational.h"

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdlib>
#include <limits>
#include <utility>

namespace foretrace {

using BoostInteger = boost::multiprecision::cpp_int;
using BoostRational = boost::multiprecision::cpp_rational;

struct Rational::Exact {
  BoostRational value;
};

Rational::Rational(Exact exact) : exact_{std::make_shared<const Exact>(std::move(exact))} {}

Rational::Rational(std::int64_t whole) {
  static const auto kZero = std::make_shared<const Exact>();
  exact_ = whole == 0 ? kZero : std::make_shared<const Exact>(Exact{BoostRational{whole}});
}

Rational::Rational(std::int64_t numerator, std::int64_t denominator)
    : Rational{Exact{BoostRational{numerator, denominator}}} {}

Rational Rational::from_decimal(const std::string& digits, int exponent) {
  // Short numbers, which nearly all are, need no large integers on the way.
  constexpr int kFitsInt64 = 18;
  if (digits.size() <= kFitsInt64 && exponent <= 0 && -exponent <= kFitsInt64) {
    std::int64_t power = 1;
    for (int i = 0; i < -exponent; ++i) power *= 10;
    return Rational{std::stoll(digits), power};
  }
  const BoostInteger power = pow(BoostInteger{10}, static_cast<unsigned>(std::abs(exponent)));
  const BoostInteger whole{digits};
  return Rational{Exact{exponent < 0 ? BoostRational{whole, power}
                                     : BoostRational{BoostInteger{whole * power}}}};
}

Rational operator+(const Rational& a, const Rational& b) {
  return Rational{Rational::Exact{BoostRational{a.exact_->value + b.exact_->value}}};
}
Rational operator-(const Rational& a, const Rational& b) {
  return Rational{Rational::Exact{BoostRational{a.exact_->value - b.exact_->value}}};
}
Rational operator*(const Rational& a, const Rational& b) {
  return Rational{Rational::Exact{BoostRational{a.exact_->value * b.exact_->value}}};
}
Rational operator/(const Rational& a, const Rational& b) {
  return Rational{Rational::Exact{BoostRational{a.exact_->value / b.exact_->value}}};
}

std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
  return a.exact_->value.compare(b.exact_->value) <=> 0;
}

bool Rational::is_whole() const { return denominator(exact_->value) == 1; }

Rational Rational::floor() const {
  BoostInteger whole = numerator(exact_->value) / denominator(exact_->value);  // towards zero
  if (exact_->value < 0 && BoostRational{whole} != exact_->value) --whole;
  return Rational{Exact{BoostRational{whole}}};
}

std::optional<std::int64_t> Rational::rounded() const {
  const BoostRational half{exact_->value < 0 ? -1 : 1, 2};
  const BoostRational shifted{exact_->value + half};
  const BoostInteger whole = numerator(shifted) / denominator(shifted);
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (whole > kMost || whole < -kMost) return std::nullopt;
  return static_cast<std::int64_t>(whole);
}

Rational Rational::power(unsigned exponent) const {
  return Rational{Exact{BoostRational{pow(numerator(exact_->value), exponent),
                                      pow(denominator(exact_->value), exponent)}}};
}

std::size_t Rational::bits() const {
  return msb(abs(numerator(exact_->value)) + 1) + msb(denominator(exact_->value));
}

double Rational::to_double() const { return exact_->value.convert_to<double>(); }

std::string Rational::text() const { return exact_->value.str(); }

}  // namespace foretrace
