// What a command line says of itself, in other forms than --help: manual pages, and the completions
// that shells load. All of it is read from the parser, so it cannot be out of date.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace foretrace {

/// One option, flag or positional, as the pages and completions need it.
struct OptionWords {
  std::vector<std::string> names;    ///< "-m", "--machine"; empty for a positional
  std::string placeholder;           ///< "TEXT", "FILE", "text|json"; empty for a flag
  std::vector<std::string> choices;  ///< all that it takes, where that is a list
  std::string text;
  bool takes_value = false;
};

/// The options and positionals of `app`, in the order of --help.
std::vector<OptionWords> option_words(const CLI::App& app);

/// The commands of `app` in the order of --help, without those that --help leaves out.
std::vector<const CLI::App*> commands_of(const CLI::App& app);

/// A manual page of section 1 in roff: of the whole program for its root, else of one command.
/// `version` is the program's.
std::string man_page(const CLI::App& app, const std::string& version);

/// A script for bash-completion, and a function for zsh's compsys.
std::string bash_completion(const CLI::App& root);
std::string zsh_completion(const CLI::App& root);

/// Adds the commands that print them: `completion` and `man`.
void add_page_commands(CLI::App& root, const std::string& version);

/// The variables of the environment that every command knows, as the end of --help.
std::string environment_text();

}  // namespace foretrace
