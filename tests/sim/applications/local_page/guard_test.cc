#include "sim/applications/local_page/guard.h"

#include <gtest/gtest.h>

#include <string>

namespace foretrace::local_page {
namespace {

const Guard kGuard{"0123456789abcdef0123456789abcdef", 8321};

Asked good() {
  return {.method = "GET",
          .target = "/0123456789abcdef0123456789abcdef/serve.js",
          .host = "127.0.0.1:8321",
          .origin = "http://127.0.0.1:8321",
          .site = "same-origin"};
}

int status_of(const Asked& asked) {
  const auto path = admitted(kGuard, asked);
  return path ? 200 : path.error().status;
}

TEST(LocalPageGuard, LetsItsOwnPageAsk) {
  ASSERT_TRUE(admitted(kGuard, good()).has_value());
  EXPECT_EQ(*admitted(kGuard, good()), "serve.js");
  Asked typed = good();  // the address in the browser's bar
  typed.origin = {};
  typed.site = "none";
  typed.target = "/0123456789abcdef0123456789abcdef/";
  EXPECT_EQ(*admitted(kGuard, typed), "");
}

TEST(LocalPageGuard, RefusesWhoeverHasNotItsToken) {
  for (const char* target :
       {"", "/", "//", "serve.js", "/serve.js", "/0123456789abcdef0123456789abcdee/serve.js",
        "/0123456789abcdef0123456789abcde/serve.js", "/0123456789ABCDEF0123456789abcdef/serve.js",
        "/0123456789abcdef0123456789abcdef0/serve.js", "?token=0123456789abcdef0123456789abcdef"}) {
    Asked asked = good();
    asked.target = target;
    EXPECT_EQ(status_of(asked), 403) << target;
  }
}

TEST(LocalPageGuard, RefusesNamesThatResolveToThisComputer) {
  for (const char* host :
       {"", "evil.example", "evil.example:8321", "127.0.0.1", "127.0.0.1:8322", "0.0.0.0:8321",
        "127.0.0.1:8321.evil.example", "localhost", "LOCALHOST:8321 ", "[::1]:8321"}) {
    Asked asked = good();
    asked.host = host;
    EXPECT_EQ(status_of(asked), 421) << host;
  }
  Asked asked = good();
  asked.host = "localhost:8321";
  EXPECT_EQ(status_of(asked), 200);
}

TEST(LocalPageGuard, RefusesOtherSites) {
  for (const char* origin :
       {"null", "http://evil.example", "https://127.0.0.1:8321", "http://127.0.0.1:80",
        "http://127.0.0.1:8321.evil.example", "file://", "http://localhost:8321@evil.example"}) {
    Asked asked = good();
    asked.origin = origin;
    EXPECT_EQ(status_of(asked), 403) << origin;
  }
  for (const char* site : {"cross-site", "same-site", "anything"}) {
    Asked asked = good();
    asked.site = site;
    EXPECT_EQ(status_of(asked), 403) << site;
  }
}

TEST(LocalPageGuard, HasNoPathsThatLeaveIt) {
  const std::string root = "/" + kGuard.token;
  for (const char* path : {"", "/../etc/passwd", "/runs/../../x", "/%2e%2e/etc/passwd", "/a?b=c",
                           "/a#b", "/A", "/a\\b", "/\x01", "/ "}) {
    Asked asked = good();
    const std::string target = root + path;
    asked.target = target;
    EXPECT_EQ(status_of(asked), 404) << path;
  }
}

TEST(LocalPageGuard, KnowsTwoMethods) {
  for (const char* method : {"PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECT", ""}) {
    Asked asked = good();
    asked.method = method;
    EXPECT_EQ(status_of(asked), 405) << method;
  }
}

TEST(LocalPageGuard, MakesAnotherTokenEachTime) {
  EXPECT_EQ(new_token().size(), 32U);
  EXPECT_NE(new_token(), new_token());
}

}  // namespace
}  // namespace foretrace::local_page
