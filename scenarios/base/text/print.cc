#include "scenarios/base/text/print.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>

namespace foretrace {
namespace {

std::atomic<int> lost_errno{0};

void remember_lost() {
  int none = 0;
  lost_errno.compare_exchange_strong(none, errno != 0 ? errno : EIO);
}

/// Names come from files: what would move a terminal's cursor or set its title is shown as '?'.
bool is_shown(char c) {
  return static_cast<unsigned char>(c) >= ' ' ? c != '\x7f' : c == '\n' || c == '\t' || c == '\r';
}

bool write_shown(std::string_view text, std::FILE* to) {
  if (std::ranges::all_of(text, is_shown)) {
    return std::fwrite(text.data(), 1, text.size(), to) == text.size();
  }
  std::string shown{text};
  std::ranges::replace_if(
      shown, [](char c) { return !is_shown(c); }, '?');
  return std::fwrite(shown.data(), 1, shown.size(), to) == shown.size();
}

}  // namespace

void secure_standard_streams() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is this one: all below are open by now.
    if (::fcntl(standard, F_GETFD) < 0 && errno == EBADF) (void)::open("/dev/null", O_RDONLY);
  }
  for (const int failed_write : {SIGPIPE, SIGXFSZ}) {
    std::signal(failed_write, SIG_IGN);  // NOLINT(cert-err33-c): cannot fail for these
  }
}

void print_text(std::string_view text) {
  errno = 0;
  if (!write_shown(text, stdout)) remember_lost();
}

void print_error_text(std::string_view text) {
  (void)lost_output();  // in the order of the program where both go to one place
  (void)write_shown(text, stderr);
}

int lost_output() {
  errno = 0;
  if (std::fflush(stdout) != 0) remember_lost();
  return lost_errno;
}

}  // namespace foretrace
