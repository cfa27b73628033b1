// The values of a config.json as transformers has them once it is read: a key that is absent has
// its type's default, one that is null has none.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/read/reader.h"

namespace foretrace::training {

using Json = nlohmann::json;
using Keys = std::initializer_list<std::string_view>;

class ConfigValues {
 public:
  ConfigValues(Reader& reader, const YamlNode& at, const Json& root, const Json& defaults,
               const std::string& file)
      : reader_{reader}, at_{at}, root_{root}, defaults_{defaults}, file_{file} {}

  /// Of the first of `keys` that the file has, else of the first that has a default; null where
  /// it is null or there is none. A dot goes into an object: "attn_config.kv_n_heads".
  const Json* find(Keys keys);
  /// Whether the file itself has the key, null or not.
  bool has(std::string_view key) const;
  bool is_default(std::string_view key) const { return defaults_.contains(std::string{key}); }

  /// A whole number; 0 where it is null, absent or false. Others than 0 to 10^9 are problems.
  std::int64_t size(Keys keys);
  /// One that must be there.
  std::int64_t needed(Keys keys);
  double real(Keys keys, double otherwise);
  bool flag(Keys keys, bool otherwise);
  std::string word(Keys keys);
  /// Numbers or flags; empty where there are none.
  std::vector<std::int64_t> numbers(Keys keys);
  std::vector<std::string> words(Keys keys);

  void problem(const std::string& what, std::string hint = {});
  void warning(const std::string& what, std::string hint = {});
  const Json& root() const { return root_; }
  /// Keys that were asked for, and those that need not be.
  void know(std::string_view key) { known_.insert(std::string{key}); }
  const std::set<std::string>& known() const { return known_; }

 private:
  std::int64_t whole(std::string_view key, const Json& value);

  Reader& reader_;
  const YamlNode& at_;
  const Json& root_;
  const Json& defaults_;
  const std::string& file_;
  std::string found_;  ///< key of the last value
  std::set<std::string> known_;
};

/// `text` as JSON, with what Python's json module writes beside it (NaN, Infinity: null). Empty
/// where it is none, and `problem` says why.
std::optional<Json> parse_config(std::string_view text, std::string& problem);

}  // namespace foretrace::training
