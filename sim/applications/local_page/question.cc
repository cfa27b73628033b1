#include "sim/applications/local_page/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "scenarios/base/text/diagnostic.h"

namespace foretrace::local_page {
namespace {

using Body = nlohmann::json;

constexpr std::size_t kLongestWord = 200, kMostWords = 12;
constexpr std::size_t kLargestConfig = std::size_t{4} << 20;
constexpr double kMostNumber = 1 << 24;

struct Wrong {
  Problem problem;
};
[[noreturn]] void wrong(std::string field, std::string message, std::string hint = {}) {
  throw Wrong{{std::move(field), std::move(message), std::move(hint)}};
}

/// A word of a command line: of one line, and no file of anybody's.
std::string word_of(const std::string& field, const Body& value) {
  if (!value.is_string()) wrong(field, "it is a text");
  std::string word = value.get<std::string>();
  if (word.empty()) wrong(field, "it is empty");
  if (word.size() > kLongestWord) wrong(field, fmt::format("longer than {}", kLongestWord));
  if (std::ranges::any_of(word, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
    wrong(field, "it has a control character");
  }
  return word;
}

/// A name, not a file: of letters, digits and `more`.
std::string name_of(const std::string& field, const Body& value, std::string_view more = "-_.") {
  std::string name = word_of(field, value);
  const auto is_plain = [&](unsigned char c) {
    return std::isalnum(c) != 0 || more.find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!std::ranges::all_of(name, is_plain) || std::isalnum(name.front()) == 0 ||
      name.find("..") != std::string::npos || name.find(".yaml") != std::string::npos ||
      name.find(".yml") != std::string::npos || name.ends_with(".json")) {
    wrong(field, fmt::format("it is a name: letters, digits, {}", more),
          "files cannot be named here");
  }
  return name;
}

/// As `foretrace machine` takes it: "8xB200@host/link+ib-ndr:64".
std::string machine_of(const Body& value) { return name_of("machine", value, "-_.+:@/"); }

std::int64_t whole_of(const std::string& field, const Body& value) {
  const bool is_whole = value.is_number() && value.get<double>() >= 1 &&
                        value.get<double>() <= kMostNumber &&
                        std::floor(value.get<double>()) == value.get<double>();
  if (!is_whole) wrong(field, fmt::format("it is a whole number from 1 to {:.0f}", kMostNumber));
  return static_cast<std::int64_t>(value.get<double>());
}

const Body& list_of(const std::string& field, const Body& value) {
  if (!value.is_array() || value.size() > kMostWords) {
    wrong(field, fmt::format("it is a list of at most {}", kMostWords));
  }
  return value;
}

std::string page_of(const Body& value) {
  std::string page = word_of("page", value);
  constexpr std::size_t kLongest = 40;
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0; };
  if (page.size() > kLongest || !std::ranges::all_of(page, is_plain)) {
    wrong("page", "it is letters and digits");
  }
  return page;
}

/// Takes one key into the question; false: there is no such key.
bool take(PlanQuestion& question, std::string& model, const std::string& key, const Body& value) {
  auto& arguments = question.arguments;
  if (key == "page") {
    question.page = page_of(value);
  } else if (key == "coarse") {
    if (!value.is_boolean()) wrong(key, "it is true or false");
    question.is_coarse = value.get<bool>();
  } else if (key == "model") {
    model = name_of(key, value);
  } else if (key == "config") {
    if (!value.is_string()) wrong(key, "it is the text of a config.json");
    question.config = value.get<std::string>();
    if (question.config->size() > kLargestConfig) wrong(key, "it is larger than 4 MiB");
  } else if (key == "machine") {
    question.machine = machine_of(value);
  } else if (key == "gpus") {
    std::string list;
    for (const Body& one : value.is_array() ? list_of(key, value) : Body::array({value})) {
      list += fmt::format("{}{}", list.empty() ? "" : ",", whole_of(key, one));
    }
    if (list.empty()) wrong(key, "it is empty");
    arguments.push_back("--gpus=" + list);
  } else if (key == "global_batch" || key == "sequence" || key == "top") {
    const std::string flag = key == "global_batch" ? "global-batch" : key;
    arguments.push_back(fmt::format("--{}={}", flag, whole_of(key, value)));
  } else if (key == "precision" || key == "parameters") {
    arguments.push_back(fmt::format("--{}={}", key, name_of(key, value)));
  } else if (key == "with" || key == "keep") {
    for (const Body& one : list_of(key, value)) {
      const std::string word = word_of(key, one);
      if (word.find(".yaml") != std::string::npos) {  // host=FILE.yaml
        wrong(key, "it is NAME=VALUE", "files cannot be named here");
      }
      arguments.push_back(fmt::format("--{}={}", key, word));
      if (key == "with") question.with.push_back(arguments.back());
    }
  } else if (key == "cost_per_gpu_hour") {
    if (!value.is_number()) wrong(key, "it is a number");
    arguments.push_back(fmt::format("--cost-per-gpu-hour={}", value.get<double>()));
  } else {
    return false;
  }
  return true;
}

Body object_of(std::string_view body) {
  try {
    std::set<std::string> keys;
    const auto once = [&keys](int depth, Body::parse_event_t event, Body& key) {
      if (event == Body::parse_event_t::key && depth == 1 &&
          !keys.insert(key.get<std::string>()).second) {
        wrong("", fmt::format("'{}' is there twice", key.get<std::string>().substr(0, 40)));
      }
      return true;
    };
    Body json = Body::parse(body, once);
    if (!json.is_object()) wrong("", "the body is no JSON object");
    return json;
  } catch (const Body::parse_error& error) {
    Problem problem{.field = {}, .message = "the body is no JSON", .hint = {}};
    set_place(problem, body, error.byte == 0 ? 0 : error.byte - 1);
    throw Wrong{problem};
  } catch (const Body::exception&) {  // 1e999
    wrong("", "the body has a number that is too large");
  }
}

[[noreturn]] void unknown(const std::string& key, const std::vector<std::string>& known) {
  const std::string shown = key.substr(0, kLongestWord);
  wrong("", fmt::format("'{}' is nothing that can be asked", shown), suggest(shown, known));
}

}  // namespace

tl::expected<PlanQuestion, Problem> read_plan_question(std::string_view body) {
  try {
    PlanQuestion question;
    std::string model;
    const Body json = object_of(body);
    for (const auto& [key, value] : json.items()) {
      if (take(question, model, key, value)) continue;
      unknown(key,
              {"page", "coarse", "model", "config", "machine", "gpus", "global_batch", "sequence",
               "top", "precision", "parameters", "with", "keep", "cost_per_gpu_hour"});
    }
    if (question.page.empty()) wrong("page", "it is missing");
    if (model.empty() == !question.config) wrong("model", "a model's name or a config is needed");
    if (question.machine.empty()) wrong("machine", "it is missing");
    if (!json.contains("gpus")) wrong("gpus", "it is missing");
    question.arguments.insert(question.arguments.begin(),
                              {"plan", question.config ? kConfigFile : model, "--format=json",
                               "--machine=" + question.machine});
    if (question.is_coarse) question.arguments.emplace_back("--coarse");
    return question;
  } catch (const Wrong& one) {
    return tl::unexpected{one.problem};
  }
}

tl::expected<RowQuestion, Problem> read_row_question(std::string_view body) {
  try {
    RowQuestion question;
    const Body json = object_of(body);
    for (const auto& [key, value] : json.items()) {
      if (key == "page") {
        question.page = page_of(value);
      } else if (key == "plan" || key == "row") {
        const auto number = static_cast<std::size_t>(whole_of(key, value));
        (key == "plan" ? question.plan : question.row) = number;
      } else {
        unknown(key, {"page", "plan", "row"});
      }
    }
    if (question.page.empty() || question.plan == 0 || question.row == 0) {
      wrong("", "page, plan and row are needed");
    }
    return question;
  } catch (const Wrong& one) {
    return tl::unexpected{one.problem};
  }
}

}  // namespace foretrace::local_page
