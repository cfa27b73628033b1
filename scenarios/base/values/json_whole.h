// Whole numbers of JSON from outside: nlohmann's get cuts off what is too large and what is behind
// the point.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace foretrace {

/// One that `Integer` holds. Throws Json::exception.
template <class Integer, class Json>
Integer json_whole(const Json& value) {
  const bool fits =
      value.is_number_unsigned()  ? std::in_range<Integer>(value.template get<std::uint64_t>())
      : value.is_number_integer() ? std::in_range<Integer>(value.template get<std::int64_t>())
                                  : false;
  if (fits) return value.template get<Integer>();
  constexpr std::size_t kShown = 40;
  const std::string shown = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  throw Json::other_error::create(
      501, shown.substr(0, kShown) + " is no whole number that is possible here", &value);
}

template <class Integer, class Json>
Integer json_whole_or(const Json& object, const char* key, Integer otherwise) {
  return object.contains(key) ? json_whole<Integer>(object.at(key)) : otherwise;
}

}  // namespace foretrace
