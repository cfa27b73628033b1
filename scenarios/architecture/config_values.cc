#include "scenarios/architecture/config_values.h"

#include <fmt/format.h>

#include <cmath>

namespace foretrace::training {
namespace {

constexpr std::int64_t kLargestNumber = 1'000'000'000;
constexpr int kDeepest = 32;                  // a config.json has four levels
constexpr std::size_t kMostOfList = 100'000;  // entries: a layer each
constexpr std::size_t kMostShown = 60;        // characters of a value in a message

/// A value as a message shows it.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "...";
  return text;
}

/// "attn_config.kv_n_heads" of an object in an object.
const Json* inside(const Json& root, std::string_view key) {
  const Json* at = &root;
  while (at->is_object()) {
    const std::size_t dot = key.find('.');
    const auto found = at->find(std::string{key.substr(0, dot)});
    if (found == at->end()) return nullptr;
    if (dot == std::string_view::npos) return &*found;
    key.remove_prefix(dot + 1);
    at = &*found;
  }
  return nullptr;
}

class TooDeep : public std::exception {};

}  // namespace

bool ConfigValues::has(std::string_view key) const { return inside(root_, key) != nullptr; }

const Json* ConfigValues::find(Keys keys) {
  for (const std::string_view key : keys) know(key.substr(0, key.find('.')));
  for (const std::string_view key : keys) {
    const Json* value = inside(root_, key);
    if (value == nullptr) continue;
    found_ = key;
    return value->is_null() ? nullptr : value;
  }
  for (const std::string_view key : keys) {
    const auto value = defaults_.find(std::string{key});
    if (value == defaults_.end()) continue;
    found_ = key;
    return value->is_null() ? nullptr : &*value;
  }
  return nullptr;
}

std::int64_t ConfigValues::whole(std::string_view key, const Json& value) {
  if (value.is_boolean() && !value.get<bool>()) return 0;
  if (value.is_number()) {
    const double number = value.get<double>();
    if (number >= 0 && number <= static_cast<double>(kLargestNumber) && number == std::floor(number)) {
      return static_cast<std::int64_t>(number);
    }
  }
  problem(
      fmt::format("'{}' is {}: a whole number from 0 to {} is needed", key, shown(value), kLargestNumber));
  return 0;
}

std::int64_t ConfigValues::size(Keys keys) {
  const Json* value = find(keys);
  return value == nullptr ? 0 : whole(found_, *value);
}

std::int64_t ConfigValues::needed(Keys keys) {
  const Json* value = find(keys);
  if (value == nullptr) {
    problem(fmt::format("there is no '{}'", *keys.begin()));
    return 1;
  }
  if (value->is_number() && value->get<double>() == 0) {
    problem(fmt::format("'{}' is 0: a whole number from 1 to {} is needed", found_, kLargestNumber));
    return 1;
  }
  return std::max<std::int64_t>(1, whole(found_, *value));
}

double ConfigValues::real(Keys keys, double otherwise) {
  const Json* value = find(keys);
  if (value == nullptr) return otherwise;
  if (value->is_number()) return value->get<double>();
  problem(fmt::format("'{}' is {}: a number is needed", found_, shown(*value)));
  return otherwise;
}

bool ConfigValues::flag(Keys keys, bool otherwise) {
  const Json* value = find(keys);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  if (value->is_number()) return value->get<double>() != 0;
  problem(fmt::format("'{}' is {}: true or false is needed", found_, shown(*value)));
  return otherwise;
}

std::string ConfigValues::word(Keys keys) {
  const Json* value = find(keys);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

std::vector<std::int64_t> ConfigValues::numbers(Keys keys) {
  const Json* value = find(keys);
  std::vector<std::int64_t> all;
  if (value == nullptr) return all;
  const std::string key = found_;
  if (!value->is_array() || value->size() > kMostOfList) {
    problem(fmt::format("'{}' is {}: a list of numbers is needed", key, shown(*value)));
    return all;
  }
  for (const Json& one : *value) {
    all.push_back(one.is_boolean() ? static_cast<std::int64_t>(one.get<bool>()) : whole(key, one));
  }
  return all;
}

std::vector<std::string> ConfigValues::words(Keys keys) {
  const Json* value = find(keys);
  std::vector<std::string> all;
  if (value == nullptr) return all;
  if (!value->is_array() || value->size() > kMostOfList) {
    problem(fmt::format("'{}' is {}: a list of words is needed", found_, shown(*value)));
    return all;
  }
  for (const Json& one : *value) all.push_back(one.is_string() ? one.get<std::string>() : "");
  return all;
}

void ConfigValues::problem(const std::string& what, std::string hint) {
  reader_.problems.error(at_, fmt::format("{}: {}", file_, what), std::move(hint));
}

void ConfigValues::warning(const std::string& what, std::string hint) {
  reader_.problems.warning(at_, fmt::format("{}: {}", file_, what), std::move(hint));
}

std::optional<Json> parse_config(std::string_view text, std::string& problem) {
  std::string plain{text};
  bool in_string = false;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] == '"') in_string = !in_string;
    if (in_string && plain[i] == '\\') ++i;
    if (in_string) continue;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (std::string_view{plain}.substr(i, word.size()) != word) continue;
      plain.replace(i, word.size(),
                    "null" + std::string(word.size() - std::min<std::size_t>(4, word.size()), ' '));
      break;
    }
  }
  const auto callback = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kDeepest) throw TooDeep{};
    return true;
  };
  try {
    Json root = Json::parse(plain, callback);
    if (root.is_object()) return root;
    problem = "a config.json is an object: {...}";
  } catch (const TooDeep&) {
    problem = fmt::format("values are nested more than {} levels deep", kDeepest);
  } catch (const Json::exception& error) {
    const std::string_view all = error.what();
    const std::size_t at = all.find("] ");
    problem = all.substr(at == std::string_view::npos ? 0 : at + 2, 160);
  }
  return std::nullopt;
}

}  // namespace foretrace::training
