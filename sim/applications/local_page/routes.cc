#include "sim/applications/local_page/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "reports/page/assets.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "sim/applications/local_page/page_files.h"

namespace foretrace::local_page {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostKept = 8;
constexpr int kMostChildren = 6;
constexpr std::chrono::seconds kLongestCoarse{30};
constexpr std::size_t kLargestFile = std::size_t{64} << 20;
constexpr std::size_t kMostWarnings = 8'000;  // letters

Reply failed(int status, Problem problem) { return {.status = status, .body = json_of(problem)}; }

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// `text` without the names of directories that the page has nothing to do with.
std::string without(std::string text, const fs::path& directory) {
  const std::string name = directory.string() + "/";
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
    text.erase(at, name.size());
  }
  return text;
}

/// Of a command that gave no answer.
Reply failure_of(const Ended& ended, const fs::path& directory, const std::string& config) {
  if (ended.was_stopped) return failed(409, {.message = "the page asked again"});
  if (ended.took_too_long) return failed(504, {.message = "it took too long, and was ended"});
  if (ended.said_too_much) return failed(500, {.message = "its answer is too large for a page"});
  const int status = ended.code == kWrongUse || ended.code == kBadAnswer ? 422 : 500;
  return failed(status, problem_of(without(ended.err, directory), config));
}

Reply asset(const std::string& path) {
  if (path.empty()) return {.type = "text/html", .body = std::string{assets::serve_html}};
  if (path == "serve.js") return {.type = "text/javascript", .body = std::string{assets::serve_js}};
  if (path == "parts.js") return {.type = "text/javascript", .body = std::string{assets::parts_js}};
  if (path == "serve_chart.js") {
    return {.type = "text/javascript", .body = std::string{assets::serve_chart_js}};
  }
  if (path == "serve.css") {
    std::string text;
    for (const auto part : {assets::colours_css, assets::colours_dark_css, assets::parts_css,
                            assets::report_css, assets::curves_css, assets::serve_css}) {
      text += part;
    }
    return {.type = "text/css", .body = std::move(text)};
  }
  return failed(404, {.message = "there is no such path"});
}

}  // namespace

Routes::Routes(boost::asio::io_context& io, RunCommand run, std::string choices,
               PlannedOn planned_on)
    : io_{io},
      run_{std::move(run)},
      choices_{std::move(choices)},
      planned_on_{std::move(planned_on)} {}

Routes::~Routes() {
  for (const auto& [page, child] : running_) {
    if (const auto one = child.lock()) one->stop();
  }
}

std::function<void()> Routes::answer(const Request& request, const Answered& answered) {
  const auto now = [&](Reply reply) {
    answered(std::move(reply));
    return [] {};
  };
  if (request.method == "POST") {
    if (request.path == "plan") return plan(request.body, answered);
    if (request.path == "row") return row(request.body, answered);
    return now(failed(404, {.message = "there is no such question"}));
  }
  if (request.path == "choices") return now({.body = choices_});
  if (request.path.starts_with("runs/")) return now(row_file(request.path));
  return now(asset(request.path));
}

std::function<void()> Routes::start(const std::string& page, const Commands& commands,
                                    std::function<Reply(const Ended&)> reply,
                                    const Answered& answered) {
  if (const auto found = running_.find(page); found != running_.end()) {
    if (const auto earlier = found->second.lock()) earlier->stop();
  }
  const auto child = Child::start(io_, run_, commands,
                                  [this, reply = std::move(reply), answered](const Ended& ended) {
                                    --children_;
                                    answered(reply(ended));
                                  });
  ++children_;
  std::erase_if(running_, [](const auto& one) { return one.second.expired(); });
  running_[page] = child;
  return [weak = std::weak_ptr{child}] {
    if (const auto one = weak.lock()) one->stop();
  };
}

bool Routes::is_busy(const Answered& answered) const {
  if (children_ < kMostChildren) return false;
  answered(failed(503, {.message = "other pages are being answered; try again"}));
  return true;
}

Routes::Kept Routes::new_kept() {
  Kept kept;
  kept.number = ++numbers_;
  kept.directory = directory_.path() / std::to_string(kept.number);
  fs::create_directory(kept.directory);
  return kept;
}

void Routes::keep(Kept kept) {
  kept_.push_back(std::move(kept));
  if (kept_.size() <= kMostKept) return;
  std::error_code ignored;
  fs::remove_all(kept_.front().directory, ignored);
  kept_.pop_front();
}

const Routes::Kept* Routes::find(std::size_t number) const {
  const auto found = std::ranges::find(kept_, number, &Kept::number);
  return found == kept_.end() ? nullptr : &*found;
}

std::function<void()> Routes::plan(const std::string& body, const Answered& answered) {
  const auto question = read_plan_question(body);
  if (!question) {
    answered(failed(422, question.error()));
    return [] {};
  }
  if (is_busy(answered)) return [] {};
  Kept kept = new_kept();
  kept.machine = question->machine;
  kept.with = question->with;
  if (question->config) write_file(kept.directory / kConfigFile, *question->config);
  Commands commands{.directory = kept.directory, .lines = {question->arguments}};
  if (question->is_coarse) commands.longest = kLongestCoarse;
  return start(
      question->page, commands,
      [this, question = *question, kept](const Ended& ended) {
        return planned(question, kept, ended);
      },
      answered);
}

Reply Routes::planned(const PlanQuestion& question, Kept kept, const Ended& ended) {
  std::error_code ignored;
  const bool answers =
      (ended.code == kDone || ended.code == kBadAnswer) && !ended.was_stopped && !ended.out.empty();
  Json answer = answers ? Json::parse(ended.out, nullptr, false) : Json();
  if (!answer.is_object()) {
    fs::remove_all(kept.directory, ignored);
    return failure_of(ended, kept.directory, question.config.value_or(""));
  }
  if (planned_on_) planned_on_(kept.machine);
  answer.erase("files");  // which the page has nothing to do with
  for (Json& row : answer["rows"]) {
    if (!row.contains("scenario")) continue;
    kept.scenarios.push_back(row["scenario"].get<std::string>());
    kept.is_cut.push_back(row["simulated_passes"] < row["passes"]);
    row["scenario"] = without(kept.scenarios.back(), kept.directory);
  }
  const Json whole{{"plan", kept.scenarios.empty() ? 0 : kept.number},
                   {"notes", without(ended.err, kept.directory).substr(0, kMostWarnings)},
                   {"answer", std::move(answer)}};
  if (kept.scenarios.empty()) {
    fs::remove_all(kept.directory, ignored);
  } else {
    keep(std::move(kept));
  }
  return {.body = dumped(whole)};
}

std::function<void()> Routes::row(const std::string& body, const Answered& answered) {
  const auto now = [&](Reply reply) {
    answered(std::move(reply));
    return [] {};
  };
  const auto question = read_row_question(body);
  if (!question) return now(failed(422, question.error()));
  const Kept* const kept = find(question->plan);
  if (kept == nullptr) return now(failed(410, {.message = "that plan is gone: ask it again"}));
  if (question->row > kept->scenarios.size()) return now(failed(422, {.message = "no such row"}));
  if (is_busy(answered)) return [] {};
  const std::string name = fmt::format("row-{}", question->row);
  write_file(kept->directory / (name + ".yaml"), kept->scenarios[question->row - 1],
             Over::Anything);
  Arguments simulate{"simulate", name + ".yaml", "--machine=" + kept->machine, "--one-of-each"};
  simulate.insert(simulate.end(), kept->with.begin(), kept->with.end());
  if (kept->is_cut[question->row - 1]) simulate.emplace_back("--few-passes");
  simulate.push_back("--output=" + name);
  const Commands commands{
      .directory = kept->directory,
      .lines = {simulate, {"report", name, "--output=" + name + "/report.html"}}};
  return start(
      question->page, commands,
      [directory = kept->directory, question = *question](const Ended& ended) -> Reply {
        if (ended.code != kDone || ended.was_stopped) return failure_of(ended, directory, "");
        const std::string place = fmt::format("runs/{}/{}/", question.plan, question.row);
        return {.body = dumped({{"text", without(ended.out, directory)},
                                {"notes", without(ended.err, directory).substr(0, kMostWarnings)},
                                {"report", place + "report.html"},
                                {"trace", place + "trace.pftrace"}})};
      },
      answered);
}

Reply Routes::row_file(const std::string& path) const {
  std::size_t plan = 0, row = 0;
  std::string_view rest{path};
  rest.remove_prefix(std::string_view{"runs/"}.size());
  for (std::size_t* number : {&plan, &row}) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), *number);
    if (error != std::errc{} || end == rest.data() + rest.size() || *end != '/') {
      return failed(404, {.message = "there is no such path"});
    }
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()) + 1);
  }
  const Kept* const kept = find(plan);
  const bool is_report = rest == "report.html";
  if (kept == nullptr || (!is_report && rest != "trace.pftrace")) {
    return failed(404, {.message = "there is no such path"});
  }
  auto text = read_plain_file(kept->directory / fmt::format("row-{}", row) / rest, kLargestFile);
  if (!text) return failed(404, {.message = "its timeline is not there"});
  if (is_report) {
    return {.type = "text/html", .body = std::move(*text), .has_inline_script = true};
  }
  return {.type = "application/octet-stream",
          .body = std::move(*text),
          .saved_as = fmt::format("row-{}.pftrace", row)};
}

}  // namespace foretrace::local_page
