// What a request that may ask gets: the page's files, a plan, a row's timeline.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reports/timeline/temporary_directory.h"
#include "sim/applications/local_page/child.h"
#include "sim/applications/local_page/problem.h"
#include "sim/applications/local_page/question.h"

namespace foretrace::local_page {

struct Request {
  std::string method, path, body;
};

struct Reply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::string saved_as;            ///< a file for the user's disk; empty: shown
  bool has_inline_script = false;  ///< a report: in a sandbox
};
using Answered = std::function<void(Reply)>;

class Routes {
 public:
  /// Called with the machine of each plan that was answered: likely the next one's.
  using PlannedOn = std::function<void(const std::string& machine)>;

  /// `choices` is JSON: what models and machines there are. Children run in directories below one
  /// of its own, which goes with it.
  Routes(boost::asio::io_context& io, RunCommand run, std::string choices, PlannedOn planned_on);
  ~Routes();
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  /// `answered` is called once, at once or later. The result ends what nobody waits for.
  std::function<void()> answer(const Request& request, const Answered& answered);

 private:
  /// An answer that the page may come back to.
  struct Kept {
    std::size_t number = 0;
    std::filesystem::path directory;
    std::string machine;
    std::vector<std::string> with;
    std::vector<std::string> scenarios;  ///< of its rows
    std::vector<bool> is_cut;            ///< simulate --few-passes
  };
  std::function<void()> plan(const std::string& body, const Answered& answered);
  std::function<void()> row(const std::string& body, const Answered& answered);
  Reply planned(const PlanQuestion& question, Kept kept, const Ended& ended);
  Reply row_file(const std::string& path) const;
  std::function<void()> start(const std::string& page, const Commands& commands,
                              std::function<Reply(const Ended&)> reply, const Answered& answered);
  bool is_busy(const Answered& answered) const;
  Kept new_kept();
  void keep(Kept kept);
  const Kept* find(std::size_t number) const;

  boost::asio::io_context& io_;
  RunCommand run_;
  std::string choices_;
  PlannedOn planned_on_;
  TemporaryDirectory directory_{"serve"};
  std::deque<Kept> kept_;
  std::size_t numbers_ = 0;
  std::map<std::string, std::weak_ptr<Child>> running_;  ///< by page
  int children_ = 0;
};

}  // namespace foretrace::local_page
