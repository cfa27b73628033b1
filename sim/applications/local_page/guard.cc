#include "sim/applications/local_page/guard.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace foretrace::local_page {
namespace {

/// In a time that does not say how many letters are right.
bool is_token(std::string_view given, std::string_view token) {
  if (given.size() != token.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < token.size(); ++i) {
    different |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(token[i]);
  }
  return different == 0;
}

bool is_own_host(std::string_view host, std::uint16_t port) {
  return host == fmt::format("127.0.0.1:{}", port) || host == fmt::format("localhost:{}", port);
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' ||
         c == '/';
}

}  // namespace

std::string new_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::system_error{errno, std::generic_category(), "getrandom"};
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

tl::expected<std::string, Refused> admitted(const Guard& guard, const Asked& asked) {
  const auto refused = [](int status, const char* why) {
    return tl::unexpected{Refused{status, why}};
  };
  if (!is_own_host(asked.host, guard.port)) {
    return refused(421, "Host is not this server's address");
  }
  constexpr std::string_view kScheme = "http://";
  if (!asked.origin.empty() && (!asked.origin.starts_with(kScheme) ||
                                !is_own_host(asked.origin.substr(kScheme.size()), guard.port))) {
    return refused(403, "asked by another site");
  }
  if (!asked.site.empty() && asked.site != "same-origin" && asked.site != "none") {
    return refused(403, "asked by another site");
  }
  const std::string_view target = asked.target;
  const std::size_t end = std::min(target.find('/', 1), target.size());
  if (target.empty() || target.front() != '/' ||
      !is_token(target.substr(1, end - 1), guard.token)) {
    return refused(403, "the address lacks its token; foretrace serve prints it");
  }
  if (end == target.size()) return refused(404, "the address ends with /");
  const std::string_view path = target.substr(end + 1);
  if (!std::ranges::all_of(path, is_plain) || path.find("..") != std::string_view::npos) {
    return refused(404, "there is no such path");
  }
  if (asked.method != "GET" && asked.method != "POST") return refused(405, "GET or POST");
  return std::string{path};
}

}  // namespace foretrace::local_page
