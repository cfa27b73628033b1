// Who may ask the local page: any program of this computer, and any site that its browser shows,
// can reach a port of 127.0.0.1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace foretrace::local_page {

/// What a request's header says; empty where it does not.
struct Asked {
  std::string_view method, target, host, origin;
  std::string_view site;  ///< Sec-Fetch-Site: where the browser says that it comes from
};

struct Refused {
  int status = 403;
  std::string why;
};

struct Guard {
  std::string token;
  std::uint16_t port = 0;
};

/// 128 random bits of the system in hexadecimal.
std::string new_token();

/// The path behind the token, "plan" of "/TOKEN/plan": of letters, digits, and ".", "-", "_", "/",
/// without a query.
tl::expected<std::string, Refused> admitted(const Guard& guard, const Asked& asked);

}  // namespace foretrace::local_page
