#include "scenarios/lower/place_tasks.h"

#include <algorithm>
#include <utility>

namespace foretrace {
namespace {

class Placer {
 public:
  explicit Placer(std::vector<TaskNode> tasks)
      : tasks_{std::move(tasks)},
        ancestors_(tasks_.size(), std::vector<bool>(tasks_.size())),
        height_(tasks_.size()),
        is_issued_(tasks_.size()) {
    placed_.stream.resize(tasks_.size());
    placed_.waits.resize(tasks_.size());
    for (std::size_t task = 0; task < tasks_.size(); ++task) keep_direct(task);
    for (std::size_t task = tasks_.size(); task-- > 0;) {
      for (const std::size_t before : tasks_[task].after) {
        height_[before] = std::max(height_[before], height_[task] + 1);
      }
    }
  }

  TaskPlacement place() {
    for (;;) {
      issue_device_tasks();
      const auto next = next_host_task();
      if (!next) break;
      issue(*next);
    }
    for (std::size_t task = 0; task < tasks_.size(); ++task) {
      if (tasks_[task].device && height_[task] == 0) placed_.ends.push_back(task);
    }
    return std::move(placed_);
  }

 private:
  /// Leaves out of `after` what comes before another task of it.
  void keep_direct(std::size_t task) {
    auto& after = tasks_[task].after;
    std::ranges::sort(after, std::ranges::greater{});
    std::vector<std::size_t> direct;
    for (const std::size_t before : after) {
      if (ancestors_[task][before]) continue;
      direct.push_back(before);
      ancestors_[task][before] = true;
      for (std::size_t i = 0; i < before; ++i) {
        if (ancestors_[before][i]) ancestors_[task][i] = true;
      }
    }
    after = std::move(direct);
  }

  bool can_be_issued(std::size_t task) const {
    return !is_issued_[task] &&
           std::ranges::all_of(tasks_[task].after, [this](std::size_t t) { return is_issued_[t]; });
  }

  /// One pass is enough: what comes before a task is written before it.
  void issue_device_tasks() {
    for (std::size_t task = 0; task < tasks_.size(); ++task) {
      if (tasks_[task].device && can_be_issued(task)) issue(task);
    }
  }

  std::optional<std::size_t> next_host_task() const {
    std::optional<std::size_t> best;
    for (std::size_t task = 0; task < tasks_.size(); ++task) {
      const bool is_candidate = !tasks_[task].device && can_be_issued(task);
      if (is_candidate && (!best || height_[task] > height_[*best])) best = task;
    }
    return best;
  }

  void issue(std::size_t task) {
    const bool is_on_host = !tasks_[task].device;
    if (!is_on_host) {
      placed_.stream[task] = choose_stream(task);
      last_[placed_.stream[task]] = task;
    }
    for (const std::size_t before : tasks_[task].after) {
      if (!tasks_[before].device) continue;  // the host has done it
      if (is_on_host || placed_.stream[before] != placed_.stream[task]) {
        placed_.waits[task].push_back(before);
      }
    }
    is_issued_[task] = true;
    placed_.order.push_back(task);
  }

  std::size_t choose_stream(std::size_t task) {
    const std::uint32_t device = *tasks_[task].device;
    std::optional<std::size_t> idle;
    for (std::size_t stream = 0; stream < last_.size(); ++stream) {
      if (placed_.devices[stream] != device || !ancestors_[task][last_[stream]]) continue;
      if (std::ranges::count(tasks_[task].after, last_[stream]) != 0) return stream;
      idle = idle.value_or(stream);
    }
    if (idle) return *idle;
    placed_.devices.push_back(device);
    last_.push_back(task);
    return last_.size() - 1;
  }

  std::vector<TaskNode> tasks_;
  std::vector<std::vector<bool>> ancestors_;  ///< all that must have ended before a task
  std::vector<std::size_t> height_;           ///< the longest chain of tasks behind a task
  std::vector<bool> is_issued_;
  std::vector<std::size_t> last_;  ///< task of each stream
  TaskPlacement placed_;
};

}  // namespace

TaskPlacement place_tasks(std::vector<TaskNode> tasks) { return Placer{std::move(tasks)}.place(); }

}  // namespace foretrace
