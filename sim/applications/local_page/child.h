// A command in a forked child: what it prints up to a limit, its time up to a limit, and killed
// with all that it started when nobody waits for it any more.
#pragma once

#include <sys/types.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace foretrace::local_page {

using Arguments = std::vector<std::string>;
/// Runs one command line in this process and returns its exit code; called in a child.
using RunCommand = std::function<int(const Arguments& arguments)>;

struct Commands {
  std::filesystem::path directory;  ///< where they run
  std::vector<Arguments> lines;     ///< one after the other, as long as they end with 0
  std::chrono::seconds longest{600};
  std::size_t most_output = std::size_t{64} << 20;
};

struct Ended {
  int code = -1;
  bool was_stopped = false;  ///< by stop()
  bool took_too_long = false, said_too_much = false;
  std::string out, err;
};

class Child : public std::enable_shared_from_this<Child> {
 public:
  using Done = std::function<void(Ended)>;

  /// `done` is called once, later. This process has one thread: a fork copies it whole.
  static std::shared_ptr<Child> start(boost::asio::io_context& io, const RunCommand& run,
                                      const Commands& commands, Done done);
  Child(boost::asio::io_context& io, Done done);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void stop();

 private:
  struct Pipe {
    boost::asio::posix::stream_descriptor end;
    std::string* text;
    std::array<char, 1 << 16> buffer{};
  };
  void read(const std::shared_ptr<Pipe>& pipe);
  void end_pipe();
  void kill_all() const;

  boost::asio::steady_timer timer_;
  Done done_;
  Ended ended_;
  pid_t pid_ = -1;
  std::size_t most_output_ = 0;
  int open_pipes_ = 0;
};

}  // namespace foretrace::local_page
