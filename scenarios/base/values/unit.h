// Units of the quantities in a scenario, and how reading one fails. Apart from quantity.h because
// its exact arithmetic is slow to compile and few need it.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace foretrace {

/// Powers of bytes and of seconds: a size is {1, 0}, a time {0, 1}, a rate {1, -1}.
struct Unit {
  int bytes = 0;
  int time = 0;
  friend bool operator==(Unit, Unit) = default;
};
inline constexpr Unit kNumber{0, 0};
inline constexpr Unit kSize{1, 0};
inline constexpr Unit kTime{0, 1};
inline constexpr Unit kRate{1, -1};

/// "a size", "a time", "a plain number", for messages.
std::string describe(Unit unit);

/// What is wrong with a text, and where in it.
struct QuantityError {
  std::string message;
  std::string hint;
  std::size_t offset = 0;
  bool is_told = false;  ///< it follows from what was reported already
};
template <class T>
using Parsed = tl::expected<T, QuantityError>;

struct Quantity;  ///< see quantity.h

}  // namespace foretrace
