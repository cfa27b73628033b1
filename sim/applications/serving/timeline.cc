#include "sim/applications/serving/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "scenarios/base/text/made_from.h"
#include "scenarios/serving/traffic.h"

namespace foretrace::serving {
namespace {

constexpr const char* kQuantities[] = {"TTFT", "TPOT", "ITL", "end to end"};
constexpr Times Summary::*kTimesOf[] = {&Summary::ttft, &Summary::tpot, &Summary::itl,
                                        &Summary::end_to_end};
constexpr std::uint32_t kStatistics = 1 + std::size(kPercentiles);  // the mean first
constexpr std::uint32_t kDecodeSizes = 17, kPromptSizes = 25;       // powers of two

/// The operations, in this order, of every timeline of requests.
enum Op : std::uint32_t {
  kWholeRun = std::size(kQuantities) * kStatistics,
  kWaits,
  kPrefill,
  kDecode,
  kPreempted,
  kDecodes,
  kPrompts = kDecodes + kDecodeSizes,
  kMerged = kPrompts + kPromptSizes,
  kOps
};

std::string sizes_text(std::uint32_t power, const char* what) {
  const std::uint64_t high = std::uint64_t{1} << power;
  if (power == 0) return fmt::format("1 {}", what);
  if (power == 1) return fmt::format("2 {}s", what);
  return fmt::format("{} to {} {}s", high / 2 + 1, high, what);
}

std::uint32_t power_of(std::int64_t count, std::uint32_t powers) {
  const auto up = std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, count)));
  return std::min(static_cast<std::uint32_t>(std::countr_zero(up)), powers - 1);
}

std::uint32_t op_of(const Batch& batch) {
  return batch.chunks == 0 ? kDecodes + power_of(batch.decodes, kDecodeSizes)
                           : kPrompts + power_of(batch.tokens(), kPromptSizes);
}

class Writer {
 public:
  Writer(const Serving& serving, const Predicted& predicted, const Timeline& iterations, int line)
      : serving_{serving}, predicted_{predicted}, line_{line} {
    made_.origin = iterations.origin;
    made_.origin.program_hash = hash_of_traffic(serving);
    made_.origin.launch_ns.reset();
    for (const Served& engine : predicted.engines) {
      requests_ += std::ssize(engine.requests);
      iterations_ += std::ssize(engine.iterations);
    }
    every_ = (requests_ + kMostDrawnRequests - 1) / kMostDrawnRequests;
    merged_ = (iterations_ + kMostDrawnIterations - 1) / kMostDrawnIterations;
  }

  Timeline write() && {
    write_ops();
    write_regions();
    std::uint32_t process = 0;
    for (const Served& engine : predicted_.engines) write_engine(engine, process++);
    write_facts();
    if (every_ > 1 || merged_ > 1) {
      made_.origin.versions["drawn"] = fmt::format(
          "{} of {} requests have a lane{}; figures are of all", drawn_, requests_,
          merged_ > 1 ? fmt::format(", {} neighbouring iterations are one span", merged_) : "");
    }
    return std::move(made_);
  }

 private:
  void add_op(std::string kind, std::string label, std::int64_t times) {
    OpRow op;
    op.kind = std::move(kind);
    op.label = std::move(label);
    op.line = line_;
    if (times > 0) op.loops = {static_cast<std::uint64_t>(times)};
    made_.ops.push_back(std::move(op));
  }

  void write_ops() {
    for (const char* quantity : kQuantities) {
      add_op("region", fmt::format("{} mean", quantity), 0);
      for (const int p : kPercentiles) add_op("region", fmt::format("{} p{}", quantity, p), 0);
    }
    add_op("region", "first arrival to last token", 0);
    for (const char* kind :
         {"request_waits", "request_prefill", "request_decode", "request_preempted"}) {
      add_op(kind, {}, requests_);
    }
    for (std::uint32_t i = 0; i < kDecodeSizes; ++i) {
      add_op("decode_iteration", sizes_text(i, "request"), iterations_);
    }
    for (std::uint32_t i = 0; i < kPromptSizes; ++i) {
      add_op("prefill_iteration", sizes_text(i, "token"), iterations_);
    }
    add_op("decode_iteration", "neighbours as one", iterations_);
  }

  void write_region(std::uint32_t op, double ms, double one_end, double other_end) {
    constexpr double kNs = 1e6;
    RegionSamples region;
    region.op = op;
    region.name = made_.ops[op].label;
    region.samples_ns = {std::llround(ms * kNs)};
    if (ms > 0) {
      region.low_factor = std::min({1.0, one_end / ms, other_end / ms});
      region.high_factor = std::max({1.0, one_end / ms, other_end / ms});
    }
    if (region.low_factor > 0) made_.regions.push_back(std::move(region));
  }

  void write_regions() {
    std::uint32_t op = 0;
    for (const auto times : kTimesOf) {
      const bool has =
          predicted_.middle.has_tpot || times == &Summary::ttft || times == &Summary::end_to_end;
      const Times &middle = predicted_.middle.*times, &fast = predicted_.fast.*times,
                  &slow = predicted_.slow.*times;
      if (has) write_region(op, middle.mean, fast.mean, slow.mean);
      for (std::uint32_t i = 0; has && i + 1 < kStatistics; ++i) {
        write_region(op + 1 + i, middle.percentiles[i], fast.percentiles[i], slow.percentiles[i]);
      }
      op += kStatistics;
    }
    constexpr double kSecond = 1e3;  // milliseconds
    write_region(kWholeRun, predicted_.middle.seconds * kSecond, predicted_.fast.seconds * kSecond,
                 predicted_.slow.seconds * kSecond);
  }

  std::uint32_t lane(LaneKind kind, std::uint32_t process, std::string name) {
    Lane one;
    one.kind = kind;
    one.process = process;
    one.device = kind == LaneKind::Stream ? 0 : kNoDevice;
    one.name = std::move(name);
    made_.lanes.push_back(std::move(one));
    return static_cast<std::uint32_t>(made_.lanes.size() - 1);
  }

  void span(std::uint32_t op, std::uint32_t lane, std::uint64_t instance, std::int64_t begin_ns,
            std::int64_t end_ns, std::uint32_t part = 0) {
    if (end_ns <= begin_ns) return;
    made_.spans.push_back({.op = op,
                           .lane = lane,
                           .instance = instance,
                           .begin_ns = begin_ns,
                           .end_ns = end_ns,
                           .part = part,
                           .detail = 0});
  }

  /// One of each `every_`, not always the same of them: those that one engine answers.
  bool is_drawn(std::int64_t id) const {
    constexpr std::uint64_t kMixes = 2'654'435'761;  // 2^32 over the golden ratio
    const auto every = static_cast<std::uint64_t>(every_);
    const std::uint64_t number = static_cast<std::uint64_t>(id), group = number / every;
    return number % every == (group * kMixes >> 16) % every;
  }

  /// From each admission on a request computes its prompt until a token comes, then decodes.
  void write_request(const Request& one, std::int64_t id, std::uint32_t process) {
    ++drawn_;
    const auto digits = fmt::formatted_size("{}", requests_ - 1);
    const std::uint32_t at =
        lane(LaneKind::Request, process, fmt::format("request {:0{}}", id, digits));
    const auto number = static_cast<std::uint64_t>(id);
    span(kWaits, at, number, one.arrival_ns, one.admitted_ns.front());
    for (std::size_t i = 0; i < one.admitted_ns.size(); ++i) {
      const std::int64_t begin = one.admitted_ns[i];
      const bool is_last = i == one.preempted_ns.size();
      const std::int64_t end = is_last ? one.token_ns.back() : one.preempted_ns[i];
      const auto token = std::ranges::upper_bound(one.token_ns, begin);
      const std::int64_t first = token == one.token_ns.end() ? end : std::min(end, *token);
      span(kPrefill, at, number, begin, first);
      span(kDecode, at, number, first, end);
      if (!is_last) span(kPreempted, at, number, end, one.admitted_ns[i + 1]);
    }
  }

  void write_engine(const Served& engine, std::uint32_t process) {
    for (const Request& one : engine.requests) {
      if (is_drawn(one.id)) write_request(one, one.id, process);
    }
    const std::uint32_t at = lane(LaneKind::Stream, process, "iterations");
    std::map<std::uint32_t, std::uint64_t> counts;
    const bool prompts = serving_.apart && process < serving_.apart->prefill_engines;
    const Serving own = prompts ? prompts_of(serving_) : serving_;
    // Of one GPU; blocks are those of all groups.
    const std::int64_t block = own.engine.block * cache_bytes(own) / own.layout.data;
    for (std::size_t i = 0; i < engine.iterations.size();) {
      const Iteration& first = engine.iterations[i];
      Iteration most = first;
      std::size_t next = i + 1;
      for (; next < engine.iterations.size() && next - i < static_cast<std::size_t>(merged_);
           ++next) {
        const Iteration& other = engine.iterations[next];
        most.blocks = std::max(most.blocks, other.blocks);
        most.running = std::max(most.running, other.running);
        most.waiting = std::max(most.waiting, other.waiting);
      }
      const std::uint32_t op = merged_ > 1 ? kMerged : op_of(first.batch);
      span(op, at, counts[op]++, first.begin_ns, engine.iterations[next - 1].end_ns, 1);
      made_.memory.push_back(
          {process, 0, first.begin_ns, most.blocks * block, engine.blocks * block});
      facts_.occupancy.push_back({process, first.begin_ns, most.running, most.waiting});
      i = next;
    }
    if (engine.iterations.empty()) return;
    const std::int64_t end = engine.iterations.back().end_ns;
    made_.memory.push_back({process, 0, end, 0, engine.blocks * block});
    facts_.occupancy.push_back({process, end, 0, 0});
  }

  void write_facts() {
    facts_.engine = engine_name(serving_.engine.kind);
    facts_.engines = std::ssize(predicted_.engines);
    facts_.gpus = serving_.gpus();
    facts_.requests = requests_;
    facts_.iterations = iterations_;
    facts_.preemptions = predicted_.middle.preemptions;
    facts_.waiting_share = waiting_share(predicted_.engines);
    for (const Served& engine : predicted_.engines) {
      for (const Request& one : engine.requests) facts_.output_tokens += one.output;
    }
    made_.serving = std::move(facts_);
  }

  const Serving& serving_;
  const Predicted& predicted_;
  int line_;
  std::int64_t requests_ = 0, iterations_ = 0;
  std::int64_t every_ = 1, merged_ = 1, drawn_ = 0;
  Timeline made_;
  ServingFacts facts_;
};

}  // namespace

std::string hash_of_traffic(const Serving& serving) {
  std::string text = fmt::format("foretrace serving 1\nname {}\n", serving.name);
  for (const Arrival& one : arrivals_of(serving.traffic)) {
    text += fmt::format("{} {} {}\n", one.at_ns ? fmt::to_string(*one.at_ns) : "-", one.prompt,
                        one.output);
  }
  return digest_of(text);
}

Timeline timeline_of(const Serving& serving, const Predicted& predicted, const Timeline& iterations,
                     int line) {
  return Writer{serving, predicted, iterations, line}.write();
}

}  // namespace foretrace::serving
