// The fast tokens are nlohmann's, of whatever text and in whatever pieces it comes.
#include "reports/capture/json_stream.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>

namespace foretrace::capture {
namespace {

using Json = nlohmann::json;

/// Notes what it is told.
struct Notes {
  std::string all;
  template <class... Args>
  bool note(fmt::format_string<Args...> format, Args&&... args) {
    all += fmt::format(format, std::forward<Args>(args)...) + "\n";
    return true;
  }
  bool null() { return note("null"); }
  bool boolean(bool value) { return note("{}", value); }
  bool number_integer(std::int64_t value) { return note("integer {}", value); }
  bool number_unsigned(std::uint64_t value) { return note("natural {}", value); }
  bool number_float(double value, const std::string& text) { return note("{} {}", value, text); }
  bool string(std::string& value) { return note("string {}", value); }
  bool binary(Json::binary_t& /*value*/) { return true; }
  bool start_object(std::size_t /*size*/) { return note("{{"); }
  bool start_array(std::size_t /*size*/) { return note("["); }
  bool key(std::string& name) { return note("key {}", name); }
  bool end_object() { return note("}}"); }
  bool end_array() { return note("]"); }
  static bool parse_error(std::size_t, const std::string&, const Json::exception&) { return false; }
};

void expect_same(std::string_view text) {
  Notes slow;
  const bool is_json = Json::sax_parse(text, &slow);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, text.size() + 1}) {
    Notes fast;
    std::string_view rest = text;
    JsonStream<Notes> stream{fast, [&](char* into, std::size_t size) {
                               const std::size_t some = rest.copy(into, std::min(size, piece));
                               rest.remove_prefix(some);
                               return some;
                             }};
    EXPECT_EQ(stream.parse(), is_json) << text;
    if (is_json) EXPECT_EQ(fast.all, slow.all) << text;
  }
}

const std::vector<std::string_view> kTexts{
    R"({"traceEvents": [{"ph": "X", "ts": 1712.5, "dur": 0, "args": {"grid": [1, 2, 3]}}]})",
    R"( [ 1 , -2, 0, -0, 1.5e3, 2E-2, 18446744073709551615, 18446744073709551616, -9e99 ] )",
    R"(["\"\\\/\b\f\n\r\t", "\u0041\u00e9\u20ac\ud83d\ude00", "plain", ""])",
    "[\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"]",
    R"([true, false, null, {}, [], [[]], {"a": {"b": []}}])",
    "1",
    "\"a\"",
    "",
    " ",
    "[",
    "{",
    "[1",
    "[1,",
    "[1,]",
    "{\"a\"",
    "{\"a\":",
    "{\"a\":1,}",
    "[1 2]",
    "{1: 2}",
    "[01]",
    "[1.]",
    "[.5]",
    "[-]",
    "[+1]",
    "[1e]",
    "[1e999]",
    "[tru]",
    "[nul",
    "nulll",
    "[\"a]",
    "[\"\\x\"]",
    "[\"\\u12g4\"]",
    "[\"\\ud83d\"]",
    "[\"\\ude00\"]",
    "[\"a\nb\"]",
    "[1]]",
    "[}",
    "{]",
    "[\"\xff\"]",
    "[\"\xc3\"]",
    "[\"\xed\xa0\x80\"]",
    "[1] x",
    "// a\n1"};

TEST(JsonStream, HasTheTokensOfNlohmann) {
  for (const std::string_view text : kTexts) expect_same(text);
}

TEST(JsonStream, AcceptsNoTextThatNlohmannRefuses) {
  std::minstd_rand random{1};
  for (const std::string_view text : kTexts) {
    for (int i = 0; i < 200 && !text.empty(); ++i) {
      std::string changed{text};
      constexpr std::string_view kOther = "{}[],:\"\\0-.eu tn\x80\xe2";
      changed[random() % changed.size()] = kOther[random() % kOther.size()];
      expect_same(changed);
    }
  }
}

}  // namespace
}  // namespace foretrace::capture
