#include "sim/engine/children.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "sim/engine/load_flows.h"

namespace foretrace {
namespace {

struct Child {
  pid_t pid;
  int pipe;
  std::size_t job;
  std::vector<char> bytes{};  ///< of its answer, so far
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

[[noreturn]] void run_child(const Job& job, int to, bool is_watched) {
  if (is_watched) {
    // A terminal interrupts parent and children alike: it is the parent's to decide.
    ::signal(SIGINT, SIG_IGN);  // NOLINT(cert-err33-c): cannot fail for these
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
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

Child start(const Job& job, std::size_t index, bool is_watched) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::system_error{errno, std::generic_category(), "pipe"};
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error{errno, std::generic_category(), "fork"};
  if (pid == 0) {
    ::close(ends[0]);
    run_child(job, ends[1], is_watched);
  }
  ::close(ends[1]);
  return {pid, ends[0], index};
}

/// Reads what there is of `child`'s answer. Whether that was all.
bool read_some(Child& child) {
  char buffer[1 << 16];
  const ssize_t got = ::read(child.pipe, buffer, sizeof buffer);
  if (got > 0) child.bytes.insert(child.bytes.end(), buffer, buffer + got);
  return got == 0 || (got < 0 && errno != EINTR);
}

/// The first of `running` whose answer is whole; none where `goes_on` said no when a signal came.
std::optional<std::size_t> next_over(std::vector<Child>& running,
                                     const std::function<bool()>& goes_on) {
  std::vector<pollfd> pipes;
  for (const Child& child : running) pipes.push_back({child.pipe, POLLIN, 0});
  while (true) {
    if (::poll(pipes.data(), pipes.size(), -1) < 0) {
      if (errno != EINTR) throw std::system_error{errno, std::generic_category(), "poll"};
      if (!goes_on()) return std::nullopt;
      continue;
    }
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (pipes[i].revents != 0 && read_some(running[i])) return i;
    }
  }
}

void kill_all(const std::vector<Child>& children) {
  for (const Child& child : children) {
    ::kill(child.pid, SIGKILL);
    ::close(child.pipe);
  }
  for (const Child& child : children) ::waitpid(child.pid, nullptr, 0);
}

std::vector<double> values_of(const Child& child) {
  ::close(child.pipe);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kOurBug;
  if (code == kWrongUse) throw UsageError{"a simulation could not run (see above)"};
  if (code != 0)
    throw std::runtime_error{fmt::format("a simulation ended with exit code {}", code)};
  std::vector<double> values(child.bytes.size() / sizeof(double));
  std::ranges::copy(child.bytes, reinterpret_cast<char*>(values.data()));
  return values;
}

}  // namespace

std::vector<std::vector<double>> run_in_children(const std::vector<Job>& jobs, const GoOn& go_on) {
  const std::size_t at_once = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::vector<double>> results(jobs.size());
  std::vector<Child> running;
  static std::size_t jobs_so_far = 0;  // of all calls: one alone loads it for itself
  jobs_so_far += jobs.size();
  if (jobs_so_far > 1) sim::load_flows_ahead();
  std::size_t done = 0;
  const auto goes_on = [&] { return !go_on || go_on(done); };
  const auto collect = [&] {
    const auto over = next_over(running, goes_on);
    if (!over) return false;
    const Child child = std::move(running[*over]);
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(*over));
    results[child.job] = values_of(child);
    ++done;
    return goes_on();
  };
  bool stopped = false;
  for (std::size_t i = 0; i < jobs.size() && !stopped; ++i) {
    if (running.size() == at_once) stopped = !collect();
    if (!stopped) running.push_back(start(jobs[i], i, static_cast<bool>(go_on)));
  }
  while (!running.empty() && !stopped) stopped = !collect();
  kill_all(running);
  return results;
}

}  // namespace foretrace
