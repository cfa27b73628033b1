#include "hw/run/result_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "hw/run/samples.h"
#include "hw/trace/span_builder.h"
#include "reports/timeline/environments.h"
#include "reports/timeline/timeline_json.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::hw {
namespace {

std::set<std::uint32_t> starts_in(const std::vector<RegionSamples>& rows) {
  std::set<std::uint32_t> starts;
  for (const RegionSamples& row : rows) starts.insert(row.starts.begin(), row.starts.end());
  return starts;
}

void drop_starts(std::vector<RegionSamples>& rows, const std::set<std::uint32_t>& starts) {
  for (RegionSamples& row : rows) {
    if (row.starts.size() != row.samples_ns.size()) continue;
    RegionSamples left = row;
    left.samples_ns.clear();
    left.starts.clear();
    for (std::size_t i = 0; i < row.starts.size(); ++i) {
      if (starts.contains(row.starts[i])) continue;
      left.samples_ns.push_back(row.samples_ns[i]);
      left.starts.push_back(row.starts[i]);
    }
    row = std::move(left);
  }
}

constexpr const char* kMeasuring = ".measuring";  // while a start writes

/// In a partial file: its samples are to join the result that is there.
constexpr const char* kAppends = "appends";

std::optional<Timeline> read_if_there(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  return read_timeline(file);
}

/// Their process launches would be left behind.
void refuse_old_form(const RunFiles& files) {
  if (!std::filesystem::exists(files.directory / "environment.json")) return;
  throw UsageError{
      fmt::format("{}: an earlier version measured this\n  hint: foretrace merge --convert {}",
                  files.directory.string(), files.runs().string())};
}

}  // namespace

std::filesystem::path RunFiles::result() const { return directory / kMeasuredFile; }
std::filesystem::path RunFiles::partial() const { return directory / "measured.partial.json"; }
std::filesystem::path RunFiles::runs() const { return directory.lexically_normal().parent_path(); }

StartPlan plan_start(const std::optional<Timeline>& result, const std::optional<Timeline>& partial,
                     const std::string& program_hash, const StartRequest& request) {
  StartPlan plan;
  // A second pass of a cold program in the same process would be a warm one.
  const int wanted = request.cold ? std::min(request.repetitions, 1) : request.repetitions;
  plan.repetitions = wanted;
  plan.traced = request.cold && wanted > 0 ? 0 : request.traced;
  if (request.when_there == WhenThere::Force) return plan;

  const bool interrupted = partial && partial->origin.program_hash == program_hash;
  const bool joins = interrupted && partial->origin.versions.contains(kAppends);
  if (result && !interrupted && request.when_there == WhenThere::Refuse) {
    plan = {};
    plan.complete = true;
    return plan;
  }
  plan.keep_result = result && (request.when_there == WhenThere::Append || joins);
  if (plan.keep_result && result->origin.program_hash != program_hash) {
    throw UsageError{fmt::format(
        "the result of {} that is there is of another program: the scenario or its parameters "
        "changed; --force measures anew",
        result->origin.scenario)};
  }
  if (plan.keep_result) {
    plan.start = next_start(result->regions);
    if (!result->spans.empty()) plan.traced = 0;
  }
  if (interrupted) {
    plan.keep_partial = true;
    plan.start = std::max(plan.start, next_start(partial->regions));
    const auto done = static_cast<int>(repetitions_in(partial->regions));
    plan.repetitions = std::max(0, wanted - done);
  }
  return plan;
}

ResultFiles::ResultFiles(RunFiles files, Timeline origin_and_ops)
    : files_{std::move(files)}, base_{std::move(origin_and_ops)} {}

StartPlan ResultFiles::open(const StartRequest& request) {
  std::optional<Timeline> result;
  std::optional<Timeline> partial;
  const auto plan_now = [&] {
    if (request.when_there != WhenThere::Force) {
      result = read_if_there(files_.result());
      partial = read_if_there(files_.partial());
    }
    return plan_start(result, partial, base_.origin.program_hash, request);
  };
  if (const StartPlan plan = plan_now(); plan.complete) return plan;
  make_directory(files_.directory);
  own_.emplace(files_.directory, kMeasuring);
  const StartPlan plan = plan_now();  // another start may have ended in between
  if (plan.complete) return plan;
  if (plan.keep_result) {
    refuse_old_form(files_);
    keep(std::move(*result));
  }
  if (plan.keep_partial) {
    rows_ = partial->regions;
    if (!plan.keep_result && result) base_.origin.starts = std::move(result->origin.starts);
  } else {
    std::filesystem::remove(files_.partial());  // what is there from now on is this start's
  }
  return plan;
}

void ResultFiles::keep(Timeline result) {
  appends_ = true;
  kept_is_complete_ = result.outcome.kind == Outcome::Kind::Completed && !result.regions.empty();
  kept_rows_ = std::move(result.regions);
  base_.lanes = std::move(result.lanes);
  base_.spans = std::move(result.spans);
  base_.details = std::move(result.details);
  base_.flows = std::move(result.flows);
  base_.origin.starts = std::move(result.origin.starts);
  base_.origin.clock_error_bound_ns = result.origin.clock_error_bound_ns;
  base_.origin.versions.merge(result.origin.versions);
}

void ResultFiles::join(const StartPlan& plan) {
  const std::scoped_lock lock{mutex_};
  auto partial = read_if_there(files_.partial());
  if (partial) rows_ = std::move(partial->regions);
  auto result = read_if_there(files_.result());
  if (!result || result->origin.program_hash != base_.origin.program_hash) return;
  base_.origin.starts = result->origin.starts;
  if (!plan.keep_result) return;
  // Before the traced pass the result has this start's samples, too.
  const std::set<std::uint32_t> own = starts_in(rows_);
  is_written_ = std::ranges::any_of(starts_in(result->regions),
                                    [&](std::uint32_t start) { return own.contains(start); });
  drop_starts(result->regions, starts_in(rows_));
  keep(std::move(*result));
}

Timeline ResultFiles::merged() const {
  Timeline timeline = base_;
  timeline.regions = kept_rows_;
  append_samples(timeline.regions, rows_);
  return timeline;
}

void ResultFiles::save_samples(std::vector<RegionSamples> rows) {
  const std::scoped_lock lock{mutex_};
  append_samples(rows_, rows);
  Timeline partial;
  partial.origin = base_.origin;
  partial.ops = base_.ops;
  partial.regions = rows_;
  if (appends_) partial.origin.versions[kAppends] = "yes";
  write_timeline(partial, files_.partial(), Over::Anything);
}

void ResultFiles::set_trace(Timeline trace) {
  const std::scoped_lock lock{mutex_};
  append_samples(rows_, trace.regions);
  trace.regions.clear();
  base_.lanes.clear();
  base_.spans.clear();
  base_.details = {SpanDetail{}};
  base_.flows.clear();
  add_process(base_, trace);
  base_.origin.clock_error_bound_ns = trace.origin.clock_error_bound_ns;
}

void ResultFiles::set_machine(std::string machine, std::map<std::string, std::string> versions) {
  const std::scoped_lock lock{mutex_};
  base_.origin.machine = std::move(machine);
  base_.origin.versions.merge(versions);
}

void ResultFiles::set_version(const std::string& key, const std::string& value) {
  const std::scoped_lock lock{mutex_};
  base_.origin.versions[key] = value;
}

void ResultFiles::write(bool complete) {
  const std::scoped_lock lock{mutex_};
  write_timeline(merged(), files_.result(), Over::Anything);
  is_written_ = true;
  if (complete) std::filesystem::remove(files_.partial());
}

bool ResultFiles::write_earlier_starts(const Outcome& outcome) {
  const bool is_broken =
      outcome.kind == Outcome::Kind::Failed || outcome.kind == Outcome::Kind::Timeout;
  if (!is_broken || !kept_is_complete_) return false;
  Timeline timeline = merged();
  if (!is_written_) {  // only some of this start's repetitions are there
    timeline.regions = kept_rows_;
    const std::uint32_t first = next_start(kept_rows_);
    std::erase_if(timeline.origin.starts,
                  [&](const ProcessStart& start) { return start.start >= first; });
  }
  std::string& failed = timeline.origin.versions["failed_starts"];
  if (!failed.empty()) failed += "; ";
  failed += outcome.explanation.empty() ? "a start failed" : outcome.explanation.front();
  write_timeline(timeline, files_.result(), Over::Anything);
  std::filesystem::remove(files_.partial());
  return true;
}

bool ResultFiles::write_outcome(Outcome outcome) {
  const std::scoped_lock lock{mutex_};
  if (write_earlier_starts(outcome)) return true;
  const bool wrong_data = outcome.kind == Outcome::Kind::WrongData;
  Timeline timeline = merged();
  timeline.outcome = std::move(outcome);
  if (wrong_data) {  // a time of a program that computes something else is no result
    timeline.regions.clear();
    timeline.spans.clear();
  }
  write_timeline(timeline, files_.result(), Over::Anything);
  std::filesystem::remove(files_.partial());
  return false;
}

void ResultFiles::add_start(ProcessStart start, const std::vector<nlohmann::json>& nodes) {
  const std::scoped_lock lock{mutex_};
  for (const nlohmann::json& node : nodes) {
    const std::string key = store_environment(recorded_environment(node), files_.runs());
    if (start.environment.empty()) start.environment = key;
    if (nodes.size() > 1) start.environments.push_back(key);
    const std::vector<GpuState> gpus = gpu_states(node);
    start.gpus.insert(start.gpus.end(), gpus.begin(), gpus.end());
  }
  std::erase_if(base_.origin.starts,
                [&](const ProcessStart& earlier) { return earlier.start == start.start; });
  base_.origin.starts.push_back(std::move(start));
}

}  // namespace foretrace::hw
