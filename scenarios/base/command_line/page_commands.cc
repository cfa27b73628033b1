#include <fmt/format.h>

#include <memory>

#include "scenarios/base/command_line/command.h"
#include "scenarios/base/command_line/pages.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/print.h"

namespace foretrace {
namespace {

const CLI::App& page_subject(const CLI::App& root, const std::string& command) {
  if (command.empty()) return root;
  std::vector<std::string> names;
  for (const CLI::App* one : commands_of(root)) {
    if (one->get_name() == command) return *one;
    names.push_back(one->get_name());
  }
  const std::string hint = suggest(command, names);
  throw UsageError{
      fmt::format("unknown command '{}'\n  hint: {}", command,
                  hint.empty() ? fmt::format("{} --help lists them", root.get_name()) : hint)};
}

}  // namespace

std::string environment_text() {
  return "  FORETRACE_DATA      the directory that has models/machines and scenarios; without it "
         "the\n"
         "                      one above the program, or share/foretrace beside that\n"
         "  FORETRACE_MACHINES  a directory of machine files instead of the shipped ones\n";
}

void add_page_commands(CLI::App& root, const std::string& version) {
  const std::string program = root.get_name();
  auto shell = std::make_shared<std::string>();
  CLI::App& completion =
      add_subcommand(root, "completion", "A completion of this command line for bash or zsh",
                     program + " completion bash > ~/.local/share/bash-completion/completions/" +
                         program + "\n  " + program + " completion zsh > ~/.zfunc/_" + program);
  completion.add_option("shell", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  completion.callback([&root, shell] {
    print_text(*shell == "bash" ? bash_completion(root) : zsh_completion(root));
  });

  auto command = std::make_shared<std::string>();
  CLI::App& man = add_subcommand(
      root, "man", "A manual page: of the program, or of one command",
      program + " man > " + program + ".1\n  " + program + " man completion | man -l -");
  man.add_option("command", *command, "Of this command");
  man.callback(
      [&root, command, version] { print_text(man_page(page_subject(root, *command), version)); });
}

}  // namespace foretrace
