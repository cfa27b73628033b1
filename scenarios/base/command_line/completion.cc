#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "scenarios/base/command_line/pages.h"

namespace foretrace {
namespace {

/// "_foretrace_hw", a function's name.
std::string function_name(const CLI::App& root) {
  std::string name = "_" + root.get_name();
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

bool is_machine(const OptionWords& option) {
  return std::ranges::find(option.names, "--machine") != option.names.end();
}

/// Of `man`.
bool names_a_command(const OptionWords& option) {
  return option.names.empty() && option.placeholder == "command";
}

std::vector<std::string> command_names(const CLI::App& root) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(root)) names.push_back(command->get_name());
  return names;
}

/// Prints the machines' names: what `list` says before the colon.
std::string machine_words(const CLI::App& root) {
  return fmt::format("$({} list machines 2>/dev/null | sed 's/:.*//')", root.get_name());
}

/// What follows a flag in bash, or nothing where files do.
std::string bash_values(const CLI::App& root, const OptionWords& option) {
  if (names_a_command(option)) return fmt::format("{}", fmt::join(command_names(root), " "));
  if (!option.choices.empty()) return fmt::format("{}", fmt::join(option.choices, " "));
  if (is_machine(option)) return machine_words(root);
  return "";
}

std::string bash_command(const CLI::App& root, const CLI::App& command) {
  std::string text = fmt::format("    {})\n", command.get_name());
  std::vector<std::string> flags;
  std::string after;
  std::string words;  // that positionals take
  for (const OptionWords& option : option_words(command)) {
    flags.insert(flags.end(), option.names.begin(), option.names.end());
    const std::string values = bash_values(root, option);
    if (option.names.empty()) {
      if (!values.empty()) words += " " + values;
    } else if (!values.empty()) {
      after += fmt::format("        {}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n",
                           fmt::join(option.names, "|"), values);
    }
  }
  if (!after.empty()) text += fmt::format("      case $before in\n{}      esac\n", after);
  text += fmt::format("      flags=\"{}\" words=\"{}\" ;;\n", fmt::join(flags, " "), words);
  return text;
}

/// In single quotes, with what zsh's specifications set apart behind a backslash.
std::string zsh_quoted(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

std::string zsh_action(const CLI::App& root, const OptionWords& option) {
  if (names_a_command(option)) return fmt::format("({})", fmt::join(command_names(root), " "));
  if (!option.choices.empty()) return fmt::format("({})", fmt::join(option.choices, " "));
  if (is_machine(option)) return fmt::format("{}_machines", function_name(root));
  return "_files";
}

/// One line of _arguments for each name of an option.
std::vector<std::string> zsh_specifications(const CLI::App& root, const OptionWords& option) {
  if (option.names.empty()) {
    return {fmt::format("'*:{}:{}'", zsh_quoted(option.placeholder), zsh_action(root, option))};
  }
  std::vector<std::string> lines;
  for (const std::string& name : option.names) {
    std::string line = fmt::format("'*{}[{}]", name, zsh_quoted(option.text));
    if (option.takes_value) line += fmt::format(":value:{}", zsh_action(root, option));
    lines.push_back(line + "'");
  }
  return lines;
}

}  // namespace

std::string bash_completion(const CLI::App& root) {
  const std::string function = function_name(root);
  std::string cases;
  for (const CLI::App* command : commands_of(root)) cases += bash_command(root, *command);
  return fmt::format(
      "# bash completion of {0}; written by '{0} completion bash'.\n"
      "{1}() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  local flags= words=\n"
      "  if [ \"$word\" = = ]; then word=\n"  // bash takes --flag=value apart
      "  elif [ \"$before\" = = ]; then before=${{COMP_WORDS[COMP_CWORD-2]}}\n"
      "  fi\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{2} --help --version\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n"
      "{3}"
      "    *) return ;;\n"
      "  esac\n"
      "  case $word in\n"
      "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")) ;;\n"
      "    *) [ -z \"$words\" ] || COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
      "  esac\n"
      "}}\n"
      "complete -o default -F {1} {0}\n",
      root.get_name(), function, fmt::join(command_names(root), " "), cases);
}

std::string zsh_completion(const CLI::App& root) {
  const std::string function = function_name(root);
  std::string described;
  std::string cases;
  for (const CLI::App* command : commands_of(root)) {
    described +=
        fmt::format("    '{}:{}'\n", command->get_name(), zsh_quoted(command->get_description()));
    cases += fmt::format("    {})\n      _arguments -s", command->get_name());
    for (const OptionWords& option : option_words(*command)) {
      for (const std::string& line : zsh_specifications(root, option))
        cases += " \\\n        " + line;
    }
    cases += "\n      ;;\n";
  }
  return fmt::format(
      "#compdef {0}\n"
      "# zsh completion of {0}; written by '{0} completion zsh'.\n"
      "{1}_machines() {{\n"
      "  compadd -- ${{(f)\"{2}\"}}\n"
      "}}\n"
      "{1}() {{\n"
      "  local -a commands=(\n{3}  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n"
      "{4}"
      "  esac\n"
      "}}\n"
      "{1} \"$@\"\n",
      root.get_name(), function, machine_words(root), described, cases);
}

}  // namespace foretrace
