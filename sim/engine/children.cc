#include "sim/engine/children.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "sim/engine/load_flows.h"

namespace foretrace {
namespace {

struct Child {
  pid_t pid;
  int pipe;
  std::size_t job;
};

void write_all(int to, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(to, bytes, size);
    if (written < 0) ::_exit(kBroke);
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
}

[[noreturn]] void run_child(const Job& job, int to) {
  try {
    const std::vector<double> result = job();
    write_all(to, result.data(), result.size() * sizeof(double));
  } catch (const UsageError& error) {
    print_error("{}\n", error.what());
    ::_exit(kWrongUse);
  } catch (const std::exception& error) {
    print_error("{}\n", error.what());
    ::_exit(kBroke);
  }
  ::_exit(kDone);  // no destructors, no atexit: those belong to the parent
}

Child start(const Job& job, std::size_t index) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::system_error{errno, std::generic_category(), "pipe"};
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error{errno, std::generic_category(), "fork"};
  if (pid == 0) {
    ::close(ends[0]);
    run_child(job, ends[1]);
  }
  ::close(ends[1]);
  return {pid, ends[0], index};
}

std::vector<double> finish(const Child& child) {
  std::vector<char> bytes;
  char buffer[1 << 16];
  for (ssize_t got = 0; (got = ::read(child.pipe, buffer, sizeof buffer)) > 0;) {
    bytes.insert(bytes.end(), buffer, buffer + got);
  }
  ::close(child.pipe);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kOurBug;
  if (code == kWrongUse) throw UsageError{"a simulation could not run (see above)"};
  if (code != 0)
    throw std::runtime_error{fmt::format("a simulation ended with exit code {}", code)};
  std::vector<double> values(bytes.size() / sizeof(double));
  std::ranges::copy(bytes, reinterpret_cast<char*>(values.data()));
  return values;
}

}  // namespace

std::vector<std::vector<double>> run_in_children(const std::vector<Job>& jobs) {
  const std::size_t at_once = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::vector<double>> results(jobs.size());
  std::vector<Child> running;
  static std::size_t jobs_so_far = 0;  // of all calls: one alone loads it for itself
  jobs_so_far += jobs.size();
  if (jobs_so_far > 1) sim::load_flows_ahead();
  const auto collect = [&] {
    results[running.front().job] = finish(running.front());
    running.erase(running.begin());
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (running.size() == at_once) collect();
    running.push_back(start(jobs[i], i));
  }
  while (!running.empty()) collect();
  return results;
}

}  // namespace foretrace
