#include "scenarios/base/values/rational.h"

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

Rational::Rational(Exact exact) {
  const BoostRational& value = exact.value;
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (denominator(value) == 1 && value <= kMost && value >= -kMost) {
    whole_ = static_cast<std::int64_t>(numerator(value));
  } else {
    exact_ = std::make_shared<const Exact>(std::move(exact));
  }
}

Rational::Exact Rational::exact() const {
  return is_small() ? Exact{BoostRational{whole_}} : *exact_;
}

Rational::Rational(std::int64_t numerator, std::int64_t denominator) {
  if (denominator == 1) {
    whole_ = numerator;
  } else {
    *this = Rational{Exact{BoostRational{numerator, denominator}}};
  }
}

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
  std::int64_t sum = 0;
  if (a.is_small() && b.is_small() && !__builtin_add_overflow(a.whole_, b.whole_, &sum)) return sum;
  return Rational{Rational::Exact{BoostRational{a.exact().value + b.exact().value}}};
}
Rational operator-(const Rational& a, const Rational& b) {
  std::int64_t difference = 0;
  if (a.is_small() && b.is_small() && !__builtin_sub_overflow(a.whole_, b.whole_, &difference)) {
    return difference;
  }
  return Rational{Rational::Exact{BoostRational{a.exact().value - b.exact().value}}};
}
Rational operator*(const Rational& a, const Rational& b) {
  std::int64_t product = 0;
  if (a.is_small() && b.is_small() && !__builtin_mul_overflow(a.whole_, b.whole_, &product)) {
    return product;
  }
  return Rational{Rational::Exact{BoostRational{a.exact().value * b.exact().value}}};
}
Rational operator/(const Rational& a, const Rational& b) {
  return Rational{Rational::Exact{BoostRational{a.exact().value / b.exact().value}}};
}

std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
  if (a.is_small() && b.is_small()) return a.whole_ <=> b.whole_;
  return a.exact().value.compare(b.exact().value) <=> 0;
}

bool Rational::is_whole() const { return is_small() || denominator(exact_->value) == 1; }

Rational Rational::floor() const {
  if (is_small()) return *this;
  BoostInteger whole = numerator(exact_->value) / denominator(exact_->value);  // towards zero
  if (exact_->value < 0 && BoostRational{whole} != exact_->value) --whole;
  return Rational{Exact{BoostRational{whole}}};
}

std::optional<std::int64_t> Rational::rounded() const {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (is_small()) return whole_ < -kMost ? std::nullopt : std::optional{whole_};
  const BoostRational half{exact_->value < 0 ? -1 : 1, 2};
  const BoostRational shifted{exact_->value + half};
  const BoostInteger whole = numerator(shifted) / denominator(shifted);
  if (whole > kMost || whole < -kMost) return std::nullopt;
  return static_cast<std::int64_t>(whole);
}

Rational Rational::power(unsigned exponent) const {
  const BoostRational value = exact().value;
  return Rational{
      Exact{BoostRational{pow(numerator(value), exponent), pow(denominator(value), exponent)}}};
}

std::size_t Rational::bits() const {
  const BoostRational value = exact().value;
  return msb(abs(numerator(value)) + 1) + msb(denominator(value));
}

double Rational::to_double() const {
  return is_small() ? static_cast<double>(whole_) : exact_->value.convert_to<double>();
}

std::string Rational::text() const { return exact().value.str(); }

}  // namespace foretrace
