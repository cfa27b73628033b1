// many_commands: commands of foretrace, each in a fork of this process, which has loaded what a
// command loads. A sanitized program takes a tenth of a second to start; a fork, milliseconds.
//   standard input, a line of JSON each:  {"words": ["simulate", ...], "environment": {...},
//   "errors": FILE} standard output, a line each:         how it ended, as waitpid says, negative
//   for a signal
// A command's standard error goes to FILE; it reads nothing, and its standard output is lost.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/engine/load_flows.h"
#include "tests/hostile/mains.h"

namespace foretrace::test {
namespace {

bool open_as(int descriptor, const char* file, int flags) {
  const int opened = ::open(file, flags, 0666);
  return opened >= 0 && ::dup2(opened, descriptor) == descriptor &&
         (opened == descriptor || ::close(opened) == 0);
}

[[noreturn]] void run(const nlohmann::json& command) {
  const auto errors = command.at("errors").get<std::string>();
  if (!open_as(0, "/dev/null", O_RDONLY) || !open_as(1, "/dev/null", O_WRONLY) ||
      !open_as(2, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC)) {
    ::_exit(98);
  }
  for (const auto& [name, value] : command.at("environment").items()) {
    ::setenv(name.c_str(), value.get<std::string>().c_str(), 1);
  }
  auto words = command.at("words").get<std::vector<std::string>>();
  words.insert(words.begin(), "foretrace");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::exit(main_of_foretrace(static_cast<int>(words.size()), pointers.data()));
}

}  // namespace
}  // namespace foretrace::test

int main_of_many_commands() {
  (void)foretrace::sim::make_room_on_the_stack();
  foretrace::sim::load_flows_ahead();
  std::string line;
  while (std::getline(std::cin, line)) {
    const nlohmann::json command = nlohmann::json::parse(line);
    const pid_t child = ::fork();
    if (child == 0) foretrace::test::run(command);
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return 1;
    std::cout << (WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status)) << std::endl;
  }
  return 0;
}
