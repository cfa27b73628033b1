#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "scenarios/base/command_line/pages.h"

namespace foretrace {
namespace {

/// Text that roff takes as it is: no line begins a request, a hyphen stays one.
std::string roff(const std::string& text) {
  std::string result;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) result += "\\&";
    begins_line = c == '\n';
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

std::string page_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name()
                                     : page_name(*app.get_parent()) + "-" + app.get_name();
}

std::string command_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name()
                                     : command_name(*app.get_parent()) + " " + app.get_name();
}

/// The example that --help begins with; empty when there is none.
std::string example_of(const CLI::App& app) {
  constexpr std::string_view kBegin = "Example:\n";
  const std::string help = app.help();
  if (!help.starts_with(kBegin)) return "";
  return help.substr(kBegin.size(), help.find("\n\n") - kBegin.size());
}

std::string synopsis(const CLI::App& app, const std::vector<OptionWords>& options) {
  std::string text = fmt::format(".B {}\n[\\fIoptions\\fR]", roff(command_name(app)));
  for (const OptionWords& option : options) {
    if (option.names.empty()) text += fmt::format(" \\fI{}\\fR", roff(option.placeholder));
  }
  if (!commands_of(app).empty()) text += " \\fIcommand\\fR ...";
  return text + "\n";
}

std::string option_entry(const OptionWords& option) {
  std::string title;
  for (const std::string& name : option.names) {
    title += (title.empty() ? "" : ", ") + fmt::format("\\fB{}\\fR", roff(name));
  }
  if (!option.placeholder.empty()) {
    title += (title.empty() ? "" : " ") + fmt::format("\\fI{}\\fR", roff(option.placeholder));
  }
  return fmt::format(".TP\n{}\n{}\n", title, roff(option.text));
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

constexpr const char* kExitStatus =
    ".SH EXIT STATUS\n"
    ".TP\n0\nDone.\n"
    ".TP\n1\nDone, and the answer is bad: out of tolerance, an expectation broken, a hang.\n"
    ".TP\n2\nWrong use: flags, scenarios, files that cannot be read.\n"
    ".TP\n3\nThis machine cannot: no GPU, too few of them.\n"
    ".TP\n4\nIt broke while running: CUDA, NCCL, MPI, a result that cannot be written.\n"
    ".TP\n70\nAn error in the program itself.\n"
    ".TP\n130\nInterrupted: plan has printed what it knew by then.\n";

}  // namespace

std::string man_page(const CLI::App& app, const std::string& version) {
  const std::vector<OptionWords> options = option_words(app);
  const std::string name = page_name(app);
  const CLI::App* root = &app;
  while (root->get_parent() != nullptr) root = root->get_parent();
  std::string page = fmt::format(".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n", upper(roff(name)),
                                 roff(root->get_name()), roff(version));
  page += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(app.get_description()));
  page += ".SH SYNOPSIS\n" + synopsis(app, options);
  if (const std::string example = example_of(app); !example.empty()) {
    page += ".SH EXAMPLE\n.nf\n" + roff(example) + "\n.fi\n";
  }
  page += ".SH OPTIONS\n";
  for (const OptionWords& option : options) page += option_entry(option);
  std::vector<std::string> others;
  if (const auto commands = commands_of(app); !commands.empty()) {
    page += ".SH COMMANDS\n";
    for (const CLI::App* command : commands) {
      page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(command->get_name()),
                          roff(command->get_description()));
      others.push_back(fmt::format(".BR {} (1)", roff(page_name(*command))));
    }
  } else if (app.get_parent() != nullptr) {
    others.push_back(fmt::format(".BR {} (1)", roff(page_name(*root))));
  }
  page += kExitStatus;
  page += ".SH ENVIRONMENT\n.nf\n" + roff(environment_text()) + ".fi\n";
  if (!others.empty()) page += fmt::format(".SH SEE ALSO\n{}\n", fmt::join(others, ",\n"));
  return page;
}

}  // namespace foretrace
