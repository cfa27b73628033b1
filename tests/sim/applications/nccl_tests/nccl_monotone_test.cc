// Predicted NCCL times over size: nine operations, 2 to 8 ranks, eight sizes per octave from 8 B to
// 4 GiB. More bytes take longer, but where NCCL itself takes more channels or another protocol;
// what happens there is held against graph launches measured on 2, 3 and 4 H200s at powers of two
// (reports/measured/*_ranks/nccl_*), whose medians repeat within 1 %.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/nccl/rules/p2p.h"
#include "models/nccl/time/cost.h"
#include "reports/timeline/statistics.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/base/text/data_directory.h"
#include "sim/applications/nccl_tests/predict.h"

namespace foretrace::test {
namespace {

constexpr std::size_t kOps = 9;

struct Point {
  NcclTestsSize size;
  double us = 0;        ///< of the kernel
  nccl::Choice choice;  ///< channels: of one transfer where the operation is made of transfers
};

std::string text(const Point& p) {
  return fmt::format("{} B {:.2f} us ({} {} {}x{})", p.size.bytes, p.us,
                     name_of(p.choice.algorithm), name_of(p.choice.protocol), p.choice.channels,
                     p.choice.threads);
}

bool same_choice(const nccl::Choice& a, const nccl::Choice& b) {
  return a.algorithm == b.algorithm && a.protocol == b.protocol && a.channels == b.channels &&
         a.threads == b.threads;
}

CollectiveKind kind_of(NcclTestsOp op) {
  using enum CollectiveKind;
  static constexpr std::array kKinds{AllReduce, AllGather, ReduceScatter, Broadcast, Reduce,
                                     AllToAll,  AllToAll,  Gather,        Scatter};
  return kKinds[static_cast<std::size_t>(op)];
}

bool is_exchange(NcclTestsOp op) {
  return op == NcclTestsOp::SendRecv || nccl::is_send_recv(kind_of(op));
}

const Machine& machine() {
  static const Machine kMachine = load_machine("h200-nvswitch-8");
  return kMachine;
}

/// The kernel's time alone on the machine, as a graph launch shows it.
Point point(NcclTestsOp op, const nccl::Tuning& tuning, const NcclTestsSize& size) {
  const Bytes part{size.count * 4};
  const nccl::Cost cost = op == NcclTestsOp::SendRecv
                              ? nccl::send_recv_cost(machine(), tuning, part, true)
                              : nccl::collective_cost(machine(), tuning, {kind_of(op), part});
  const double wire =
      static_cast<double>(cost.wire_bytes.count) / machine().rate(Param::NvlinkBandwidth) * 1e6;
  Point p{size, std::chrono::duration<double, std::micro>(cost.latency).count() + wire,
          cost.choice};
  if (is_exchange(op)) p.choice.channels = nccl::transfer_of(tuning, part).channels;
  return p;
}

/// `per_octave` sizes from 8 B to 4 GiB, as nccl-tests rounds them.
std::vector<Point> sweep(NcclTestsOp op, std::uint32_t ranks, int per_octave) {
  const nccl::Tuning tuning = nccl::tuning_for(machine(), ranks, 1, {});
  const NcclTestsType& type = parse_nccl_tests_type("float");
  std::vector<Point> points;
  for (int k = 0; k <= 29 * per_octave; ++k) {
    const auto bytes = std::llround(8 * std::exp2(k / static_cast<double>(per_octave)));
    const NcclTestsSize size = nccl_tests_size(op, static_cast<std::uint64_t>(bytes), type, ranks);
    if (size.count == 0 || (!points.empty() && points.back().size == size)) continue;
    points.push_back(point(op, tuning, size));
  }
  return points;
}

template <class Visit>
void for_each_sweep(std::uint32_t most_ranks, int per_octave, Visit visit) {
  for (std::size_t o = 0; o < kOps; ++o) {
    const auto op = static_cast<NcclTestsOp>(o);
    for (std::uint32_t ranks = 2; ranks <= most_ranks; ++ranks) {
      visit(op, ranks, sweep(op, ranks, per_octave));
    }
  }
}

/// The largest few of what was found, with where.
class Largest {
 public:
  void add(double value, const std::string& where) { found_.emplace(value, where); }
  double most() const { return found_.empty() ? 0 : found_.rbegin()->first; }
  void print(const char* what) const {
    fmt::print("{}: {} in all\n", what, found_.size());
    auto at = found_.rbegin();
    for (int i = 0; i < 3 && at != found_.rend(); ++i, ++at) {
      fmt::print("  {:.3f}  {}\n", at->first, at->second);
    }
  }

 private:
  std::multimap<double, std::string> found_;
};

std::string where(NcclTestsOp op, std::uint32_t ranks, const Point& from, const Point& to) {
  return fmt::format("{}, {} ranks: {} -> {}", info(op).name, ranks, text(from), text(to));
}

TEST(NcclTime, NeverFallsWhileNcclChoosesTheSame) {
  std::size_t compared = 0;
  for_each_sweep(8, 8, [&](NcclTestsOp op, std::uint32_t ranks, const std::vector<Point>& points) {
    for (std::size_t i = 1; i < points.size(); ++i) {
      if (!same_choice(points[i - 1].choice, points[i].choice)) continue;
      ++compared;
      EXPECT_GE(points[i].us, points[i - 1].us * (1 - 1e-6))
          << where(op, ranks, points[i - 1], points[i]);
    }
  });
  EXPECT_GT(compared, 8000u);
}

/// The measured graph launches: median over samples of the mean over processes, by size.
std::map<std::uint64_t, double> measured(NcclTestsOp op, std::uint32_t ranks) {
  const std::string name = op == NcclTestsOp::AllToAll ? "all_to_all" : std::string{info(op).name};
  const Timeline timeline =
      read_timeline(fmt::format("{}/reports/measured/{}_ranks/nccl_{}/measured.timeline.json",
                                data_directory().string(), ranks, name));
  std::map<std::uint64_t, std::vector<double>> sums;
  for (const RegionSamples& region : timeline.regions) {
    if (!region.name.ends_with("_graph")) continue;
    const std::uint64_t first = region.name.starts_with("large") ? 8u << 20 : 64u;
    std::vector<double>& sum = sums[first << region.instance];
    sum.resize(region.samples_ns.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += static_cast<double>(region.samples_ns[i]) * 1e-3 /
                static_cast<double>(region.per * ranks);
    }
  }
  std::map<std::uint64_t, double> times;
  for (const auto& [bytes, samples] : sums) times[bytes] = median(samples);
  return times;
}

// What hardware shows when the size doubles. The largest rise is alltoall's on 3 ranks from 512
// MiB, x2.11; at a change of protocol, all_reduce's on 3 ranks from 2 to 4 MiB, x2.09. The one fall
// of more than 2 % is sendrecv's where LL ends: 4 ranks, 512 KiB to 1 MiB, 17.98 to 16.86 us, -6.3
// % (3 ranks: -1.3 %).
constexpr double kLargestRise = 2.11;
constexpr double kLargestFall = 0.062;
constexpr double kNoise = 0.015;

TEST(NcclTime, IsMeasuredToRiseAndFallAsTheBoundsSay) {
  double rise = 0, fall = 0;
  for (std::size_t o = 0; o < kOps; ++o) {
    for (std::uint32_t ranks = 2; ranks <= 4; ++ranks) {
      const auto op = static_cast<NcclTestsOp>(o);
      const std::map<std::uint64_t, double> times = measured(op, ranks);
      ASSERT_EQ(times.size(), 26u) << info(op).name;
      for (auto at = std::next(times.begin()); at != times.end(); ++at) {
        const double ratio = at->second / std::prev(at)->second;
        rise = std::max(rise, ratio);
        fall = std::max(fall, 1 - ratio);
        if (1 - ratio < kNoise) continue;
        EXPECT_EQ(op, NcclTestsOp::SendRecv) << ranks << " ranks, " << at->first << " B";
        EXPECT_EQ(at->first, 1u << 20);
      }
    }
  }
  EXPECT_NEAR(rise, kLargestRise, 0.01);
  EXPECT_NEAR(fall, kLargestFall, 0.001);
}

TEST(NcclTime, OfTwiceTheSizeFallsOnlyWhereTheMeasurementFalls) {
  for_each_sweep(4, 1, [&](NcclTestsOp op, std::uint32_t ranks, const std::vector<Point>& points) {
    const std::map<std::uint64_t, double> times = measured(op, ranks);
    for (std::size_t i = 1; i < points.size(); ++i) {
      const double fall = 1 - points[i].us / points[i - 1].us;
      if (fall < 1e-6) continue;
      const auto before = times.lower_bound(points[i - 1].size.bytes);
      const auto after = times.lower_bound(points[i].size.bytes);
      ASSERT_NE(after, times.end());
      EXPECT_GT(1 - after->second / before->second, 0.01)
          << where(op, ranks, points[i - 1], points[i]);
      EXPECT_LT(fall, kLargestFall) << where(op, ranks, points[i - 1], points[i]);
    }
  });
}

TEST(NcclTime, RisesAtASwitchByNoMoreThanHardwareShowsForTwiceTheSize) {
  Largest rises;
  for_each_sweep(8, 8, [&](NcclTestsOp op, std::uint32_t ranks, const std::vector<Point>& points) {
    for (std::size_t i = 1; i < points.size(); ++i) {
      if (same_choice(points[i - 1].choice, points[i].choice)) continue;
      rises.add(points[i].us / points[i - 1].us, where(op, ranks, points[i - 1], points[i]));
    }
  });
  rises.print("changes of channels, threads or protocol; time over time before");
  EXPECT_LT(rises.most(), kLargestRise);
}

// Between powers of two, where nothing was measured, NCCL's own steps make times fall:
// - A send/recv doubles its channels when one would carry more than 16 MiB. Measured: on 4 ranks
//   128 MiB on 8 channels take 822.1 us, 256 MiB on 16 channels 879.2 us, 7 % more for twice the
//   bytes, so right behind the step the time is far below (3 ranks: 621.5 and 673.1 us).
// - LL ends at 16 KiB times 32 channels, and Simple is faster from there on: -6.3 % measured over
//   a doubling. From 5 ranks on only 4 channels carry that LL.
// - A ring's LL takes one more channel only when there are 512 threads' worth of data for each, so
//   before the second channel the first does two rounds of its threads, behind it each does one.
constexpr double kChannelsDouble = 0.45;
constexpr double kLlEnds = 0.42;
constexpr double kLlChannel = 0.32;  // broadcast over 8 ranks, since its fit to them: 0.31

TEST(NcclTime, FallsAtASwitchOnlyByWhatNcclsOwnStepsExplain) {
  Largest doubles, ends, channel;
  for_each_sweep(8, 8, [&](NcclTestsOp op, std::uint32_t ranks, const std::vector<Point>& points) {
    for (std::size_t i = 1; i < points.size(); ++i) {
      const nccl::Choice& before = points[i - 1].choice;
      const nccl::Choice& after = points[i].choice;
      const double fall = 1 - points[i].us / points[i - 1].us;
      if (fall < 1e-6) continue;
      const std::string at = where(op, ranks, points[i - 1], points[i]);
      if (before.protocol != after.protocol) {
        const bool to_ll128 = after.protocol == nccl::Protocol::LL128;
        EXPECT_TRUE(is_exchange(op) || (to_ll128 && fall < kNoise)) << at;
        ends.add(fall, at);
      } else if (before.protocol == nccl::Protocol::Simple &&
                 after.channels >= 2 * before.channels) {
        doubles.add(fall, at);
      } else {
        const bool more = after.channels > before.channels || after.threads > before.threads;
        EXPECT_TRUE(more || fall < kNoise) << at;
        channel.add(fall, at);
      }
    }
  });
  doubles.print("falls where send/recv doubles its channels");
  ends.print("falls where LL ends");
  channel.print("falls at one more channel, or more threads");
  EXPECT_LT(doubles.most(), kChannelsDouble);
  EXPECT_LT(ends.most(), kLlEnds);
  EXPECT_LT(channel.most(), kLlChannel);
}

/// nccl-tests' own loop, through the simulator, by calls and as CUDA graphs.
TEST(NcclTestsTime, FallsOnlyWhereTheKernelsTimeDoes) {
  std::vector<NcclTestsPlan> plans;
  for (std::size_t o = 0; o < kOps; ++o) {
    for (const std::uint32_t ranks : {2u, 5u, 8u}) {
      for (const std::uint32_t launches : {0u, 2u}) {
        NcclTestsPlan plan;
        plan.op = static_cast<NcclTestsOp>(o);
        plan.processes = ranks;
        plan.graph_launches = launches;
        plan.iterations = 4;
        plan.environment["NCCL_GRAPH_REGISTER"] = "0";  // as what it is compared with
        for (const Point& p : sweep(plan.op, ranks, 2)) plan.sizes.push_back(p.size);
        plans.push_back(std::move(plan));
      }
    }
  }
  const auto rows = predict_nccl_tests(plans, machine());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const NcclTestsPlan& plan = plans[i];
    const std::vector<Point> kernel = sweep(plan.op, plan.ranks(), 2);
    // A process' first graph launch takes longer (host.first_call), and the first size pays for it.
    for (std::size_t k = plan.graph_launches > 0 ? 2 : 1; k < kernel.size(); ++k) {
      const double fall = rows[i][k - 1].time_us - rows[i][k].time_us;
      const double of_kernel = std::max(0.0, kernel[k - 1].us - kernel[k].us);
      // A larger size may fill its connection's buffers in other steps, and four calls show it.
      EXPECT_LE(fall, of_kernel + kNoise * rows[i][k].time_us)
          << (plan.graph_launches > 0 ? "graph " : "calls ")
          << where(plan.op, plan.ranks(), kernel[k - 1], kernel[k]) << " predicted "
          << rows[i][k - 1].time_us << " -> " << rows[i][k].time_us;
    }
  }
}

/// Over two nodes of machines with four kinds of network, in both fidelities: what the formulas
/// hold, the slices hold, too.
TEST(NcclTestsTime, OverNodesNeverFallsWithSizeInEitherFidelity) {
  std::vector<NcclTestsPlan> plans;
  for (std::size_t o = 0; o < kOps; ++o) {
    for (const Fidelity fidelity : {Fidelity::Flow, Fidelity::Chunk}) {
      NcclTestsPlan plan;
      plan.op = static_cast<NcclTestsOp>(o);
      plan.processes = 8;
      plan.nodes = 2;
      plan.iterations = 2;
      plan.fidelity = fidelity;
      const NcclTestsType& type = parse_nccl_tests_type("float");
      for (std::uint64_t bytes = 4 << 10; bytes <= 16 << 20; bytes *= 8) {
        plan.sizes.push_back(nccl_tests_size(plan.op, bytes, type, plan.ranks()));
      }
      plans.push_back(std::move(plan));
    }
  }
  for (const std::string name :
       {"h100-nvswitch-8", "h100-efa-8", "a100-slingshot-4", "gh200-slingshot-4"}) {
    const auto rows = predict_nccl_tests(plans, load_machine(name));
    for (std::size_t i = 0; i < plans.size(); ++i) {
      // Its LL of 1 MiB takes five times as long as 2 MiB
      // (tests/models/nccl/size_property_test.cc).
      if (name == "gh200-slingshot-4" && plans[i].op == NcclTestsOp::AllReduce) continue;
      for (std::size_t k = 1; k < rows[i].size(); ++k) {
        EXPECT_GE(rows[i][k].time_us, 0.97 * rows[i][k - 1].time_us)
            << name << ", " << info(plans[i].op).name
            << (plans[i].fidelity == Fidelity::Chunk ? " by chunks, " : ", ")
            << rows[i][k].size.bytes << " B";
      }
    }
  }
}

}  // namespace
}  // namespace foretrace::test
