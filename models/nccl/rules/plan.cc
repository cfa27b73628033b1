#include "models/nccl/rules/plan.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "models/nccl/rules/chunks.h"

namespace foretrace::nccl {
namespace {

using enum Algorithm;
using enum Function;
using enum Protocol;

/// An operation on its way to a kernel, as collTaskAppend keeps it.
struct Task {
  Function function;
  DataType type;
  RedOp op;
  std::uint64_t element = 1;
  std::uint64_t count = 0;
  std::uint64_t traffic = 0;
  bool direct = false;
  Plan plan;
};

std::uint64_t traffic_per_byte(Function function, std::uint64_t ranks) {
  if (function == AllReduce) return 2;
  return function == AllGather || function == ReduceScatter ? ranks : 1;
}

/// All-gather and broadcast only move bytes.
Task task_of(const Tuning& tuning, const Request& request) {
  Task task{.function = request.function,
            .type = request.type,
            .op = request.op,
            .direct = request.direct,
            .plan = {}};
  const bool moves = request.function == AllGather || request.function == Broadcast;
  if (moves) std::tie(task.type, task.op) = std::pair{DataType::Int8, RedOp::Sum};
  task.element = size_of(task.type).count;
  const std::uint64_t bytes = request.bytes.count / ranks_sharing(request.function, tuning.ranks());
  task.count = bytes / task.element;
  task.traffic = bytes * traffic_per_byte(request.function, tuning.ranks());
  return task;
}

/// topoGetAlgoInfo: first fewer channels, then fewer threads, while a thread would have too little.
void size_kernel(const Tuning& tuning, std::uint64_t bytes, Plan& plan) {
  const std::size_t a = index_of(plan.algorithm);
  const std::size_t p = index_of(plan.protocol);
  std::uint64_t channels = tuning.channels;
  std::uint32_t threads = tuning.max_threads[a][p];
  if (is_nvls(plan.algorithm)) {
    channels = tuning.nvls_channels;
  } else {
    const std::uint64_t each = tuning.bytes_per_thread[a][p];
    const auto too_little = [&] { return bytes < channels * threads * each; };
    while (too_little() && channels >= 2) --channels;
    if (tuning.constants->is_rccl) {  // keeps its threads: src/enqueue.cc, getChannnelThreadInfo
      plan.max_channels = static_cast<std::uint32_t>(channels);
      plan.threads = threads;
      return;
    }
    while (too_little() && threads % 128 == 0) threads /= 2;
  }
  if (plan.protocol == Simple && plan.algorithm == Ring) threads += 32;  // one warp synchronises
  threads = std::max(threads, 96u);
  if (plan.algorithm == Tree || plan.algorithm == Pat) threads = 640;
  plan.max_channels = static_cast<std::uint32_t>(channels);
  plan.threads = std::max(threads, 128u);  // finishPlan: the least of any kernel
}

/// ncclRegisterCollBuffers (src/register/coll_reg.cc): Simple's kernels alone use registered
/// buffers, and then NCCL takes 16 channels where it would take up to 24.
void take_direct_way(const Tuning& tuning, Plan& plan) {
  plan.direct = plan.protocol == Simple && plan.algorithm == Ring && tuning.stays_on_nvlink() &&
                !tuning.constants->is_rccl;
  if (plan.direct && plan.max_channels > 16 && plan.max_channels <= 24) plan.max_channels = 16;
}

/// ncclPrepareTasks: within one kind of operation, those within four times of the smallest are
/// chosen for as if they were one.
void choose(const Tuning& tuning, std::vector<Task*>& alike, std::uint32_t pipelined) {
  for (std::size_t begin = 0; begin < alike.size();) {
    std::size_t end = begin + 1;
    std::uint64_t count = alike[begin]->count;
    while (end < alike.size() && alike[end]->traffic < 4 * alike[begin]->traffic) {
      count += alike[end++]->count;
    }
    const Task& first = *alike[begin];
    const Bytes bytes{count * first.element * ranks_sharing(first.function, tuning.ranks())};
    const Candidate best =
        cheapest(tuning, {first.function, bytes, first.type, first.op, pipelined});
    for (; begin < end; ++begin) {
      Plan& plan = alike[begin]->plan;
      plan.algorithm = best.algorithm;
      plan.protocol = best.protocol;
      plan.price_us = best.price_us;
      plan.latency_us = best.latency_us;
      size_kernel(tuning, bytes.count, plan);
      if (alike[begin]->direct) take_direct_way(tuning, plan);
      if (plan.protocol == LL) alike[begin]->traffic *= 4;
    }
  }
}

/// scheduleCollTasksToPlan: deals the tasks' bytes out over the channels in cells, channel by
/// channel, each channel up to its share of the traffic.
class Dealer {
 public:
  Dealer(const Tuning& tuning, const std::vector<Task*>& tasks)
      : tuning_{tuning}, least_{tuning.constants->min_traffic_per_channel} {
    std::uint64_t traffic = 0;
    std::uint64_t wanted = 0;
    last_ = is_nvls(tasks.front()->plan.algorithm) ? tuning.nvls_channels : tuning.channels;
    for (const Task* task : tasks) {
      traffic += std::max(least_, task->traffic);
      wanted = std::min<std::uint64_t>(wanted + task->plan.max_channels, last_);
    }
    per_channel_ = std::max(least_, traffic / wanted);
  }

  void deal(Task& task) {
    std::uint64_t per_byte = traffic_per_byte(task.function, tuning_.ranks());
    if (task.plan.protocol == LL) per_byte *= 4;
    const std::uint64_t cell = divide_up(divide_up(least_, per_byte), 16) * 16;
    const std::uint64_t in_cell = cell / task.element;
    const std::uint64_t cells = divide_up(task.count * task.element, cell);
    const std::uint64_t traffic = cell * per_byte;
    split(cells, traffic);
    Counts counts{low_ * in_cell, middle_count_ != 0 ? middle_ * in_cell : 0, high_ * in_cell};
    (counts.high != 0 ? counts.high : counts.low) -= cells * in_cell - task.count;
    place(task, counts);
    const std::uint64_t per_element = task.element * per_byte;
    if (counts.high != 0) {
      channel_ += task.plan.channels - 1;
      dealt_ = high_ * in_cell * per_element;
    } else if (middle_count_ != 0) {
      channel_ += task.plan.channels;
      dealt_ = 0;
    } else {
      dealt_ += low_ * in_cell * per_element;
    }
    if (dealt_ >= per_channel_ && channel_ + 1 != last_) {
      ++channel_;
      dealt_ = 0;
    }
  }

 private:
  struct Counts {
    std::uint64_t low, middle, high;
  };

  /// How many cells the first channel, each between, and the last one take.
  void split(std::uint64_t cells, std::uint64_t traffic) {
    middle_ = std::min(cells, divide_up(per_channel_, traffic));
    low_ = cells;
    if (channel_ + 1 != last_) low_ = std::min(cells, divide_up(per_channel_ - dealt_, traffic));
    middle_count_ = (cells - low_) / middle_;
    high_ = (cells - low_) % middle_;
    const std::uint64_t wanted = (low_ != 0 ? 1 : 0) + middle_count_ + (high_ != 0 ? 1 : 0);
    if (last_ < channel_ + wanted) {
      middle_count_ = last_ - channel_ - 2;
      middle_ = (cells - low_) / (middle_count_ + 1);
      high_ = middle_ + (cells - low_) % (middle_count_ + 1);
    }
    if (high_ == 0 && middle_count_ != 0) {
      high_ = middle_;
      --middle_count_;
    }
    if (low_ != 0) return;
    ++channel_;  // the first one was full
    if (middle_count_ == 0) {
      low_ = high_;
      high_ = 0;
    } else {
      low_ = middle_;
      --middle_count_;
    }
  }

  void place(Task& task, const Counts& counts) {
    Plan& plan = task.plan;
    plan.first_channel = static_cast<std::uint32_t>(channel_);
    plan.channels = static_cast<std::uint32_t>((counts.low != 0 ? 1 : 0) + middle_count_ +
                                               (high_ != 0 ? 1 : 0));
    const auto share = [&](std::uint64_t count) {
      return share_of(tuning_, task.function, plan, count * task.element);
    };
    plan.low = share(counts.low);
    plan.middle = share(counts.middle);
    plan.high = share(counts.high);
  }

  const Tuning& tuning_;
  std::uint64_t least_;
  std::uint64_t last_ = 1;  ///< channels there are
  std::uint64_t per_channel_ = 0;
  std::uint64_t channel_ = 0;
  std::uint64_t dealt_ = 0;  ///< traffic that `channel_` has
  std::uint64_t low_ = 0, middle_ = 0, high_ = 0;
  std::uint64_t middle_count_ = 0;
};

/// RCCL's scheduleCollTasksToPlan: as many channels as the operations ask for together, each with
/// the same bytes.
void deal_evenly(const std::vector<Task*>& tasks, std::uint32_t channels) {
  std::uint64_t wanted = 0;
  std::uint64_t bytes = 0;
  for (const Task* task : tasks) {
    wanted += task->plan.max_channels;
    bytes += task->count * task->element;
  }
  const std::uint64_t usable = std::min<std::uint64_t>(wanted, channels);
  const std::uint64_t each = divide_up(divide_up(bytes, usable), 16) * 16;
  std::uint64_t before = 0;
  for (Task* task : tasks) {
    const std::uint64_t own = task->count * task->element;
    const std::uint64_t last = (before + own - 1) / each;
    task->plan.first_channel = static_cast<std::uint32_t>(before / each);
    task->plan.channels = static_cast<std::uint32_t>(last - before / each + 1);
    task->plan.low.bytes = std::min(own, each);
    before += own;
  }
}

}  // namespace

std::vector<Plan> plan_group(const Tuning& tuning, const std::vector<Request>& requests) {
  std::vector<Task> tasks;
  for (const Request& request : requests) {
    if (request.bytes.count > 0) tasks.push_back(task_of(tuning, request));
  }
  const auto pipelined = static_cast<std::uint32_t>(divide_up(tasks.size(), tuning.channels));
  // The largest first; within a kind the smallest first, kinds in order of their largest.
  std::vector<Task*> by_size;
  for (Task& task : tasks) by_size.push_back(&task);
  std::ranges::stable_sort(by_size, std::ranges::greater{}, &Task::traffic);
  std::vector<std::vector<Task*>> kinds;
  std::map<std::tuple<Function, RedOp, DataType>, std::size_t> kind_of;
  for (Task* task : by_size) {
    const auto [at, is_new] =
        kind_of.try_emplace({task->function, task->op, task->type}, kinds.size());
    if (is_new) kinds.emplace_back();
    kinds[at->second].insert(kinds[at->second].begin(), task);
  }
  std::vector<Task*> plain, nvls;
  for (std::vector<Task*>& alike : kinds) {
    choose(tuning, alike, std::max(pipelined, 1u));
    for (Task* task : alike) (is_nvls(task->plan.algorithm) ? nvls : plain).push_back(task);
  }
  for (const std::vector<Task*>& part : {plain, nvls}) {
    if (part.empty()) continue;
    if (tuning.constants->is_rccl) {
      deal_evenly(part, tuning.channels);
      continue;
    }
    Dealer dealer{tuning, part};
    for (Task* task : part) dealer.deal(*task);
  }
  std::vector<Plan> plans;
  for (Task& task : tasks) plans.push_back(task.plan);
  return plans;
}

Plan plan_of(const Tuning& tuning, const Request& request) {
  const std::vector<Plan> plans = plan_group(tuning, {request});
  return plans.empty() ? Plan{} : plans.front();
}

std::uint64_t kernel_mask(const std::vector<Plan>& plans) {
  std::uint64_t taken = 0;
  for (const Plan& plan : plans) {
    for (std::uint32_t c = 0; c < plan.channels; ++c) {
      taken |= std::uint64_t{1} << (plan.first_channel + c);
    }
  }
  return taken;
}

std::uint32_t kernel_channels(const std::vector<Plan>& plans) {
  return static_cast<std::uint32_t>(std::popcount(kernel_mask(plans)));
}

}  // namespace foretrace::nccl
