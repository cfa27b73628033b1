#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/cost/products/heuristic.h"
#include "models/cost/products/residual.h"
#include "models/machine/kept.h"
#include "models/machine/machine.h"
#include "models/machine/parts/composition.h"
#include "models/machine/parts/part.h"
#include "scenarios/architecture/config.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "sim/applications/local_page/server.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/version.h"

namespace foretrace {
namespace {

struct ServeOptions {
  std::uint16_t port = 0;
  bool open = false;
};

/// What the page offers; names of its own are taken as well.
std::string choices_of_page() {
  std::vector<std::string> named;
  for (const NamedComposition& one : named_compositions()) named.push_back(one.name);
  return nlohmann::json{
      {"version", FORETRACE_VERSION},         {"models", training::shipped_models()},
      {"machines", machine_names()},          {"named", named},
      {"gpus", part_names(PartFolder::Gpus)}, {"networks", part_names(PartFolder::Networks)},
      {"default_machine", kDefaultMachine}}
      .dump();
}

/// What every plan reads, read once: children begin with it.
void keep_what_plans_need() {
  static_cast<void>(products::recorded_heuristics());
  for (std::size_t i = 0; i <= static_cast<std::size_t>(products::Family::Unmeasured); ++i) {
    static_cast<void>(products::recorded_residual(static_cast<products::Family>(i)));
  }
  keep_machine(std::string{kDefaultMachine});
}

/// The command line in this process, as the shell would start it.
int run_line(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"foretrace"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return run_command_line(static_cast<int>(words.size()), pointers.data(), "", version_text(),
                          {kCommands.begin(), kCommands.end()});
}

/// By the desktop's own choice; nothing happens where there is no desktop.
void open_browser(const std::string& address) {
  if (::fork() != 0) return;
  if (::fork() != 0) ::_exit(0);  // nobody waits for the browser
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, stream);
  const long most = std::min(::sysconf(_SC_OPEN_MAX), 65536L);
  for (int descriptor = 3; descriptor < most; ++descriptor) ::close(descriptor);
  ::execlp("xdg-open", "xdg-open", address.c_str(), nullptr);
  ::_exit(kBroke);
}

int run_serve(const ServeOptions& options) {
  // Children work in other directories.
  const auto data = std::filesystem::absolute(data_directory()).string();
  ::setenv("FORETRACE_DATA", data.c_str(), 1);
  local_page::serve(
      {.port = options.port, .choices = choices_of_page(), .planned_on = keep_machine}, run_line,
      [&](const std::string& address) {
        print_out("{}\n", address);
        print_error(
            "open it in a browser of this computer; whoever has the address may "
            "ask. Ctrl-C ends it\n");
        // Flushed: a script may wait for the line. Without it nobody could ask.
        if (const int why = lost_output(); why != 0) {
          throw IoError{fmt::format("cannot write the address to stdout: {}", std::strerror(why))};
        }
        if (options.open) open_browser(address);
        keep_what_plans_need();  // while the browser opens
      });
  return kDone;
}

}  // namespace

void add_serve_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App& command = add_subcommand(
      app, "serve", "Plans in a browser of this computer: a page that answers while you change it",
      "foretrace serve --open\n"
      "  foretrace serve --port 8321     # then open the address that it prints");
  command.add_option("--port", options->port, "A port of 127.0.0.1; default: a free one")
      ->check(CLI::Range(1, 65535).description(""));
  command.add_flag("--open", options->open, "Open the page in the desktop's browser");
  command.callback([options, &exit_code] { exit_code = run_serve(*options); });
}

}  // namespace foretrace
