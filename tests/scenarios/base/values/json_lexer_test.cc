#include "scenarios/base/values/json_lexer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <sstream>
#include <string>

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// What came, one token a line.
struct Recorder {
  std::string all;
  void begin_object() { all += "{\n"; }
  void end_object() { all += "}\n"; }
  void begin_array() { all += "[\n"; }
  void end_array() { all += "]\n"; }
  void key(std::string_view text) { all += fmt::format("key {}\n", text); }
  void text(std::string_view text) { all += fmt::format("text {}\n", text); }
  void integer(std::int64_t value, std::string_view /*written*/) {
    all += fmt::format("integer {}\n", value);
  }
  void fraction(std::string_view written) { all += fmt::format("fraction {}\n", written); }
  void word() { all += "word\n"; }
};

/// The same by nlohmann's parser.
struct Full : nlohmann::json_sax<Json> {
  Recorder to;
  bool null() override { return to.word(), true; }
  bool boolean(bool /*value*/) override { return to.word(), true; }
  bool number_integer(std::int64_t value) override { return to.integer(value, {}), true; }
  bool number_unsigned(std::uint64_t value) override {
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    return to.integer(static_cast<std::int64_t>(std::min(value, kMost)), {}), true;
  }
  bool number_float(double /*value*/, const std::string& text) override {
    return to.fraction(text), true;
  }
  bool string(std::string& value) override { return to.text(value), true; }
  bool binary(Json::binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override { return to.begin_object(), true; }
  bool start_array(std::size_t /*size*/) override { return to.begin_array(), true; }
  bool key(std::string& name) override { return to.key(name), true; }
  bool end_object() override { return to.end_object(), true; }
  bool end_array() override { return to.end_array(), true; }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const Json::exception& /*error*/) override {
    return false;
  }
};

std::optional<std::string> by_full_parser(const std::string& text) {
  Full full;
  if (!Json::sax_parse(text, &full)) return std::nullopt;
  return full.to.all;
}

/// A source that gives a few bytes at a time.
class Drips : public std::streambuf {
 public:
  Drips(std::string_view bytes, std::size_t piece) : left_{bytes}, piece_{piece} {}

 protected:
  std::streamsize xsgetn(char* to, std::streamsize most) override {
    const std::size_t size = std::min({piece_, left_.size(), static_cast<std::size_t>(most)});
    left_.copy(to, size);
    left_.remove_prefix(size);
    return static_cast<std::streamsize>(size);
  }

 private:
  std::string_view left_;
  std::size_t piece_;
};

std::optional<std::string> by_lexer(const std::string& text, std::size_t piece) {
  Drips source{text, piece};
  Recorder recorder;
  constexpr std::size_t kLongest = 1 << 20;
  if (!JsonLexer{source, kLongest, recorder}.read()) return std::nullopt;
  return recorder.all;
}

const std::vector<std::string>& texts() {
  static const std::vector<std::string> kTexts{
      R"({})",
      R"([])",
      R"( { "a" : [ 1 , -2, 0, -0, 1.5, -0.25e-3, 1E+5, true, false, null ] } )",
      R"({"a": {"b": [[], {}, [{}]]}, "": ""})",
      R"(["\"\\\/\b\f\n\r\t", "\u00e9\u20AC\ud83d\ude00", "é€😀", "a\u0000b"])",
      R"([9223372036854775807, 9223372036854775808, 18446744073709551615, 18446744073709551616])",
      R"([-9223372036854775808, -9223372036854775809, 1e-400])",
      R"({"a name that is longer than eight bytes": "and a text of more than sixteen of them"})",
      "[\"" + std::string(200'000, 'x') + "\"]"};
  return kTexts;
}

TEST(JsonLexer, ComesToTheTokensOfTheFullParserWhateverThePieces) {
  for (const std::string& text : texts()) {
    const auto expected = by_full_parser(text);
    ASSERT_TRUE(expected) << text.substr(0, 80);
    for (const std::size_t piece : {1U, 7U, 4096U, 1U << 20}) {
      ASSERT_EQ(by_lexer(text, piece), expected) << text.substr(0, 80) << " by " << piece;
    }
  }
}

TEST(JsonLexer, TakesNothingThatTheFullParserDoesNotTake) {
  for (const char* wrong : {"",
                            " ",
                            "{",
                            "[",
                            "[1",
                            "[1,",
                            "[1,]",
                            "[,1]",
                            "[1 2]",
                            "{\"a\"}",
                            "{\"a\":}",
                            "{\"a\":1,}",
                            "{a:1}",
                            "[01]",
                            "[-]",
                            "[1.]",
                            "[.5]",
                            "[1e]",
                            "[+1]",
                            "[1e999]",
                            "[tru]",
                            "[nul",
                            "[\"",
                            "[\"\\x\"]",
                            "[\"\\u12\"]",
                            "[\"\\ud800\"]",
                            "[\"\\udc00\"]",
                            "[\"\\ud800\\u0041\"]",
                            "[\"\n\"]",
                            "[\"\xff\"]",
                            "[\"\xc0\x80\"]",
                            "[\"\xed\xa0\x80\"]",
                            "[\"\xf4\x90\x80\x80\"]",
                            "[\"\xe2\x82\"]",
                            "[]]",
                            "[] x",
                            "[}",
                            "{]",
                            "[1-2]",
                            "[1.2.3]",
                            "[\"a\"\"b\"]",
                            "[1 // no\n]"}) {
    EXPECT_FALSE(by_full_parser(wrong)) << wrong;
    EXPECT_FALSE(by_lexer(wrong, 3)) << wrong;
  }
}

TEST(JsonLexer, AgreesWithTheFullParserAboutDamagedTexts) {
  std::mt19937 random{1};
  const std::string bytes = "{}[]\",:\\u0123456789abcdefeE+-. \n\t\xc3\xa9\xf0\x7f\x01";
  std::size_t taken = 0;
  for (int run = 0; run < 30'000; ++run) {
    std::string text = texts()[random() % (texts().size() - 1)];
    for (std::size_t changes = 1 + random() % 3; changes > 0 && !text.empty(); --changes) {
      const std::size_t at = random() % text.size();
      const char byte = bytes[random() % bytes.size()];
      if (random() % 3 == 0) {
        text.erase(at, 1);
      } else if (random() % 2 == 0) {
        text.insert(at, 1, byte);
      } else {
        text[at] = byte;
      }
    }
    const auto by_us = by_lexer(text, 1 + random() % 20);
    if (!by_us) continue;  // the full parser has the last word
    ++taken;
    ASSERT_EQ(by_us, by_full_parser(text)) << text;
  }
  EXPECT_GT(taken, 3000U);
}

}  // namespace
}  // namespace foretrace
