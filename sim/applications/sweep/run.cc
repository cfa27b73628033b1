#include "sim/applications/sweep/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "scenarios/base/text/made_from.h"
#include "sim/engine/load_flows.h"
#include "sim/applications/sweep/written_row.h"

namespace foretrace::sweep {
namespace {

/// Of what is not the point's fault: it may pass.
nlohmann::ordered_json failed_row(const Sweep& sweep, const Point& point, const std::string& why) {
  nlohmann::ordered_json row = row_of(sweep, point);
  row["error"] = why;
  row[kTries] = 1;
  return row;
}

struct PointChild {
  pid_t pid = 0;
  int pipe = -1;
  const Point* point = nullptr;
  std::string row;
};

/// What the child has to say goes into its row; the terminal is the parent's, and so is the ledger:
/// a copy of its descriptor would hold its lock when the parent is gone.
[[noreturn]] void predict_into(int to_parent, const Sweep& sweep, const Point& point) {
  constexpr int kPipe = 3;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int pipe = ::dup2(to_parent, kPipe);
  ::close_range(kPipe + 1, ~0U, 0);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) {
    ::dup2(nowhere, STDERR_FILENO);
    ::dup2(nowhere, STDOUT_FILENO);
  }
  nlohmann::ordered_json answer;
  try {
    answer["row"] = predict(sweep, point);
  } catch (const std::bad_alloc&) {
    answer["row"] = failed_row(sweep, point, "not enough memory");
  } catch (const std::exception& error) {
    answer["row"] = failed_row(sweep, point, error.what());
  }
  answer["files"] = digests_of_read_files();
  const std::string row =
      answer.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  for (std::size_t sent = 0; sent < row.size();) {
    const ssize_t now = ::write(pipe, row.data() + sent, row.size() - sent);
    if (now < 0) ::_exit(1);
    sent += static_cast<std::size_t>(now);
  }
  ::_exit(0);  // no destructors, no atexit: those belong to the parent
}

PointChild start(const Sweep& sweep, const Point& point) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error{errno, std::generic_category(), "pipe"};
  }
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error{errno, std::generic_category(), "fork"};
  if (pid == 0) predict_into(ends[1], sweep, point);
  ::close(ends[1]);
  return {pid, ends[0], &point, {}};
}

/// True while there may be more to read.
bool take_part(PointChild& child) {
  char buffer[1 << 14];
  const ssize_t got = ::read(child.pipe, buffer, sizeof buffer);
  if (got > 0) child.row.append(buffer, static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

void append_row(const Sweep& sweep, PointChild& child, Ledger& ledger) {
  ::close(child.pipe);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  const auto answer = nlohmann::ordered_json::parse(child.row, nullptr, false);
  if (answer.is_object()) {
    return ledger.append(answer.at("row"), answer.at("files").get<FileDigests>());
  }
  ledger.append(failed_row(
      sweep, *child.point,
      WIFSIGNALED(status) ? fmt::format("its process was killed by signal {}", WTERMSIG(status))
                          : std::string{"its process ended without a row"}));
}

}  // namespace

void run(const Sweep& sweep, const std::vector<Point>& points, Share share, std::size_t at_once,
         Ledger& ledger, const Progress& progress) {
  std::vector<const Point*> open;
  for (const Point& point : points) {
    const bool is_mine = share.has(point.number);
    if (is_mine && !ledger.done().contains(point.number)) open.push_back(&point);
  }
  if (open.size() > 1) sim::load_flows_ahead();
  std::vector<PointChild> children;
  std::size_t next = 0;
  while (next < open.size() || !children.empty()) {
    while (children.size() < std::max<std::size_t>(1, at_once) && next < open.size()) {
      children.push_back(start(sweep, *open[next++]));
    }
    std::vector<pollfd> waiting;
    for (const PointChild& child : children) waiting.push_back({child.pipe, POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;  // a signal
    for (std::size_t i = children.size(); i-- > 0;) {
      if (waiting[i].revents == 0 || take_part(children[i])) continue;
      PointChild over = std::exchange(children[i], children.back());
      children.pop_back();
      append_row(sweep, over, ledger);
      progress(ledger.done().size(), points.size());
    }
  }
}

}  // namespace foretrace::sweep
