#include <algorithm>

#include "scenarios/base/command_line/command.h"
#include "scenarios/base/command_line/pages.h"

namespace foretrace {
namespace {

std::vector<std::string> split_words(const std::string& text, char separator) {
  std::vector<std::string> words{""};
  for (const char c : text) {
    if (c == separator) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

/// Not of "RUN/ | A/ B/", which stands for what a user has.
bool is_word(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

/// "text|json|csv", or what CLI11 makes of a list: "TEXT:{text,json}".
std::vector<std::string> choices_of(const std::string& placeholder) {
  if (placeholder.find('|') != std::string::npos) {
    std::vector<std::string> words = split_words(placeholder, '|');
    if (!std::ranges::all_of(words, is_word)) words.clear();
    return words;
  }
  const auto open = placeholder.find('{');
  const auto close = placeholder.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return split_words(placeholder.substr(open + 1, close - open - 1), ',');
}

OptionWords words_of(const CLI::Option& option) {
  OptionWords words;
  for (const std::string& name : option.get_snames()) words.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) words.names.push_back("--" + name);
  words.takes_value = option.get_items_expected_max() > 0 && option.get_type_size() != 0;
  if (words.takes_value) {
    words.placeholder =
        option.get_option_text().empty() ? option.get_type_name() : option.get_option_text();
    words.choices = choices_of(words.placeholder);
    // What the help has no room for: a type's name, "{all_reduce,broadcast}".
    if (words.choices.empty()) words.choices = choices_of(option.get_type_name());
  }
  words.text = option.get_description();
  const std::string& value = option.get_default_str();
  if (!value.empty() && words.text.find("default") == std::string::npos) {
    words.text += " (default: " + value + ")";
  }
  return words;
}

}  // namespace

std::vector<OptionWords> option_words(const CLI::App& app) {
  std::vector<OptionWords> all;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || option->get_group() == kOtherNames) continue;
    all.push_back(words_of(*option));
    if (all.back().names.empty()) all.back().placeholder = option->get_name(true, false);
  }
  // Positionals first, as --help has them.
  std::stable_partition(all.begin(), all.end(),
                        [](const OptionWords& words) { return words.names.empty(); });
  return all;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

}  // namespace foretrace
