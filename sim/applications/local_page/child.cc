#include "sim/applications/local_page/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <system_error>
#include <utility>

#include "scenarios/base/text/errors.h"

namespace foretrace::local_page {
namespace {

void limit(int what, rlim_t most) {
  const rlimit value{most, most};
  ::setrlimit(static_cast<__rlimit_resource>(what), &value);
}

[[noreturn]] void run_child(const RunCommand& run, const Commands& commands, int out, int err,
                            pid_t parent) {
  constexpr rlim_t kLargestFile = rlim_t{1} << 30;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kBroke);  // it died before
  ::signal(SIGINT, SIG_DFL);                   // NOLINT(cert-err33-c): cannot fail for these
  ::signal(SIGTERM, SIG_DFL);                  // NOLINT(cert-err33-c)
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  const long most = std::min(::sysconf(_SC_OPEN_MAX), 65536L);
  for (int descriptor = 3; descriptor < most; ++descriptor)
    ::close(descriptor);  // no socket of ours
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, kLargestFile);
  limit(RLIMIT_CPU, static_cast<rlim_t>(commands.longest.count()));
  int code = kBroke;
  try {
    if (::chdir(commands.directory.c_str()) != 0) ::_exit(kBroke);
    for (const Arguments& line : commands.lines) {
      code = run(line);
      if (code != kDone) break;
    }
  } catch (const std::exception&) {
    code = kOurBug;
  }
  std::fflush(nullptr);
  ::_exit(code);  // no destructors, no atexit: those belong to the parent
}

}  // namespace

Child::Child(boost::asio::io_context& io, Done done) : timer_{io}, done_{std::move(done)} {}

Child::~Child() {
  if (pid_ <= 0) return;
  kill_all();
  ::waitpid(pid_, nullptr, 0);
}

std::shared_ptr<Child> Child::start(boost::asio::io_context& io, const RunCommand& run,
                                    const Commands& commands, Done done) {
  auto child = std::make_shared<Child>(io, std::move(done));
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) throw std::system_error{errno, std::generic_category(), "pipe"};
  if (::pipe2(err, O_CLOEXEC) != 0) {
    const int why = errno;
    for (const int end : out) ::close(end);
    throw std::system_error{why, std::generic_category(), "pipe"};
  }
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  io.notify_fork(boost::asio::io_context::fork_prepare);
  child->pid_ = ::fork();
  if (child->pid_ == 0) run_child(run, commands, out[1], err[1], parent);
  const int why = errno;
  io.notify_fork(boost::asio::io_context::fork_parent);
  ::close(out[1]);
  ::close(err[1]);
  if (child->pid_ < 0) {
    ::close(out[0]);
    ::close(err[0]);
    throw std::system_error{why, std::generic_category(), "fork"};
  }
  ::setpgid(child->pid_, child->pid_);  // both do: whoever is first
  child->most_output_ = commands.most_output;
  child->open_pipes_ = 2;
  using boost::asio::posix::stream_descriptor;
  child->read(std::make_shared<Pipe>(Pipe{stream_descriptor{io, out[0]}, &child->ended_.out}));
  child->read(std::make_shared<Pipe>(Pipe{stream_descriptor{io, err[0]}, &child->ended_.err}));
  child->timer_.expires_after(commands.longest);
  child->timer_.async_wait([weak = child->weak_from_this()](const auto& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->ended_.took_too_long = true;
    self->kill_all();
  });
  return child;
}

void Child::read(const std::shared_ptr<Pipe>& pipe) {
  pipe->end.async_read_some(boost::asio::buffer(pipe->buffer),
                            [self = shared_from_this(), pipe](const auto& error, std::size_t got) {
                              if (error) return self->end_pipe();
                              if (pipe->text->size() + got > self->most_output_) {
                                self->ended_.said_too_much = true;
                                self->kill_all();
                              } else {
                                pipe->text->append(pipe->buffer.data(), got);
                              }
                              self->read(pipe);
                            });
}

void Child::end_pipe() {
  if (--open_pipes_ > 0) return;
  timer_.cancel();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  kill_all();  // what it may have left
  pid_ = -1;
  ended_.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  std::exchange(done_, nullptr)(std::move(ended_));
}

void Child::kill_all() const {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

void Child::stop() {
  ended_.was_stopped = true;
  kill_all();
}

}  // namespace foretrace::local_page
