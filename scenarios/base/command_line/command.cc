#include "scenarios/base/command_line/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <sstream>

#include "scenarios/base/command_line/out_of_memory.h"
#include "scenarios/base/command_line/pages.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/words.h"

namespace foretrace {
namespace {

/// The subcommand the user got as far as naming.
CLI::App& innermost(CLI::App& app) {
  CLI::App* current = &app;
  while (!current->get_subcommands().empty()) current = current->get_subcommands().back();
  return *current;
}

std::vector<std::string> known_words(const CLI::App& app, bool flags) {
  std::vector<std::string> words;
  if (flags) {
    for (const CLI::Option* option : app.get_options()) {
      for (const auto& name : option->get_lnames()) words.push_back("--" + name);
      for (const auto& name : option->get_snames()) words.push_back("-" + name);
    }
  } else {
    for (const CLI::App* sub : app.get_subcommands({})) words.push_back(sub->get_name());
  }
  return words;
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name()
                                     : full_name(*app.get_parent()) + " " + app.get_name();
}

int report_wrong_use(CLI::App& app, const std::string& message, const std::string& hint) {
  print_error("error: {}\n", message);
  if (!hint.empty()) print_error("  hint: {}\n", hint);
  print_error("Run '{} --help' for its flags.\n", full_name(app));
  return kWrongUse;
}

int report_unknown_argument(CLI::App& app) {
  CLI::App& where = innermost(app);
  const auto extras = app.remaining(true);
  const std::string word = extras.empty() ? "" : extras.front();
  const bool is_flag = word.starts_with('-');
  const auto name = is_flag ? word.substr(0, word.find('=')) : word;
  const bool is_subcommand = !is_flag && !where.get_subcommands({}).empty();
  return report_wrong_use(where,
                          fmt::format("unknown {} '{}'",
                                      is_flag         ? "flag"
                                      : is_subcommand ? "command"
                                                      : "argument",
                                      word),
                          suggest(name, known_words(where, is_flag)));
}

/// What CLI11 says of a word that is none of a list: "--fidelity: flwo not in {flow,chunk}", or,
/// where each word stands for something, "--format: Check jsn value in {...} FAILED".
int report_bad_value(CLI::App& where, const std::string& what) {
  const std::size_t colon = std::min(what.find(": "), what.size());
  const std::string name = what.substr(0, colon);
  const std::string said = what.substr(std::min(colon + 2, what.size()));
  constexpr std::string_view kCheck = "Check ";
  const bool is_check = said.starts_with(kCheck);
  const std::size_t begin = is_check ? kCheck.size() : 0;
  const std::size_t end = said.find(is_check ? " value in {" : " not in {", begin);
  for (const OptionWords& option : option_words(where)) {
    const bool is_it = option.placeholder == name || std::ranges::count(option.names, name) > 0;
    if (!is_it || option.choices.empty() || end == std::string::npos) continue;
    const std::string value = said.substr(begin, end - begin);
    const std::string hint = suggest(value, option.choices);
    return report_wrong_use(
        where, fmt::format("{}: '{}' is none of {}", name, value, fmt::join(option.choices, ", ")),
        hint.starts_with("did you mean") ? hint : "");
  }
  return report_wrong_use(where, what, "");
}

/// "16k" as 16384 and "2M" as 2097152, as scenarios count; other texts as they are.
std::string without_count_unit(std::string value) {
  constexpr std::size_t kMostDigits = 12;  // times 2^20 they fit into 64 bits
  if (value.size() < 2 || value.size() > kMostDigits + 1) return value;
  const char unit = value.back();
  const std::string digits = value.substr(0, value.size() - 1);
  if ((unit != 'k' && unit != 'M') || digits.find_first_not_of("0123456789") != std::string::npos) {
    return value;
  }
  return std::to_string(std::stoll(digits) << (unit == 'k' ? 10 : 20));
}

/// An empty value is a variable of a shell script that is not set. CLI11 would take it for no
/// option at all, and numbers that begin with 0 for octal ones.
std::string plain_value(std::string value, bool is_number) {
  if (value.empty()) throw CLI::ValidationError{"its value is empty"};
  const std::size_t begin = value.front() == '-' || value.front() == '+' ? 1 : 0;
  const auto is_digit = [&](std::size_t at) {
    return at < value.size() && value[at] >= '0' && value[at] <= '9';
  };
  while (is_number && is_digit(begin + 1) && value[begin] == '0') value.erase(begin, 1);
  return is_number ? without_count_unit(std::move(value)) : value;
}

/// Of all options that `app` and its commands have by now.
void take_plain_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](CLI::Option*) { return true; })) {
    if (option->get_items_expected_max() == 0 || option->get_type_size() == 0) continue;
    const std::string type = option->get_type_name();
    const bool is_number = type.starts_with("INT") || type.starts_with("UINT");
    option->transform([is_number](std::string value) { return plain_value(value, is_number); }, "");
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    take_plain_values(*command);
  }
}

int parse_and_run(CLI::App& app, int argc, char** argv, const int& exit_code) {
  take_plain_values(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    std::ostringstream text;
    const int code = app.exit(request, text, text);
    print_text(text.str());
    return code == 0 ? kDone : kOurBug;
  } catch (const CLI::ExtrasError&) {
    return report_unknown_argument(app);
  } catch (const CLI::ConversionError& error) {
    constexpr std::string_view kPrefix = "Could not convert: ";
    std::string what = error.what();
    if (what.starts_with(kPrefix)) {
      what = what.substr(kPrefix.size()) + " is not a number that it takes";
    }
    return report_wrong_use(innermost(app), what, "");
  } catch (const CLI::ValidationError& error) {
    return report_bad_value(innermost(app), error.what());
  } catch (const CLI::ParseError& error) {
    return report_wrong_use(innermost(app), error.what(), "");
  }
  if (app.get_subcommands().empty()) {
    return report_wrong_use(app, "a command is needed", suggest("", known_words(app, false)));
  }
  return exit_code;
}

int exit_code_of(const std::function<int()>& work) {
  try {
    return work();
  } catch (const UsageError& error) {
    print_failure(error.what());
    return kWrongUse;
  } catch (const CannotHereError& error) {
    print_failure(error.what());
    return kCannotHere;
  } catch (const std::filesystem::filesystem_error& error) {  // of a path that the user named
    const std::string where =
        error.path1().empty() ? "a directory that was searched" : error.path1().string();
    print_failure(fmt::format("{}: {}", where, error.code().message()));
    return kWrongUse;
  } catch (const std::bad_alloc&) {
    print_failure("not enough memory");
    return kBroke;
  } catch (const std::exception& error) {  // IoError, CudaError, NcclError, ...: the world failed
    if (std::string_view{error.what()}.starts_with("[json.exception.")) {  // what a file says
      print_failure(
          fmt::format("a JSON file that was read is not as it should be: {}\n  hint: it is "
                      "of another version, or was edited",
                      json_reason(error.what())));
      return kWrongUse;
    }
    print_failure(error.what());
    return kBroke;
  }
}

/// An answer that nobody could read is none.
int after_output(int exit_code) {
  const int lost = lost_output();
  if (lost == 0 || (exit_code != kDone && exit_code != kBadAnswer)) return exit_code;
  // Whoever closed a pipe knows.
  if (lost != EPIPE) print_failure(fmt::format("cannot write to stdout: {}", std::strerror(lost)));
  return kBroke;
}

/// Leaves out other names of options.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (group == kOtherNames) return {};
    return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
  }
};

}  // namespace

/// Rendered diagnostics name their file and end in a newline; a sentence gets both here.
void print_failure(const std::string& what) {
  if (what.ends_with('\n')) {
    print_error("{}", what);
  } else {
    print_error("error: {}\n", what);
  }
}

CLI::App& add_subcommand(CLI::App& app, const std::string& name, const std::string& summary,
                         const std::string& example) {
  CLI::App& sub = *app.add_subcommand(name, summary);
  sub.formatter_fn([example](const CLI::App* self, std::string shown, CLI::AppFormatMode mode) {
    return "Example:\n  " + example + "\n\n" +
           HelpFormatter{}.make_help(self, std::move(shown), mode);
  });
  return sub;
}

int run_command_line(int argc, char** argv, const std::string& description,
                     const std::string& version, const std::vector<AddCommand>& commands) {
  tell_when_memory_is_not_enough();
  secure_standard_streams();
  const std::string program = argc > 0 ? argv[0] : "foretrace";
  CLI::App app{description, program.substr(program.find_last_of('/') + 1)};
  app.set_version_flag("--version", app.get_name() + " " + version, "Print the version");
  int exit_code = kDone;
  return after_output(exit_code_of([&] {
    for (const AddCommand add : commands) add(app, exit_code);
    add_page_commands(app, version);
    app.require_subcommand(0, 1);  // "man check" is not two commands
    app.footer("Environment:\n" + environment_text());
    return parse_and_run(app, argc, argv, exit_code);
  }));
}

}  // namespace foretrace
