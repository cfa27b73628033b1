// What a fit may learn from, what only judges it, and what each region is about.
#include "sim/applications/fit/data.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "reports/timeline/timeline_json.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "sim/applications/fit/machine.h"
#include "sim/applications/fit/predict.h"
#include "sim/applications/fit/sources.h"
#include "sim/record/region_reader.h"
#include "tests/sim/applications/fit/measured_by_simulation.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::string sweep(const std::string& name, int ranks) {
  return "name: " + name + "\ntags: [nccl]\nprocesses: " + std::to_string(ranks) + R"(
streams: {s: {flags: non_blocking}}
graphs: {g: {}}
buffers: {a: {memory: device, size: 64MiB}, b: {memory: device, size: 64MiB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - repeat:
        index: i
        times: 3
        ops:
          - host_barrier: {}
          - region: {name: small, ops: [nccl_all_gather: {comm: world, stream: s, send_buffer: a, recv_buffer: b, size: 1KiB * 4 ** i, type: float32}, stream_synchronize: {stream: s}]}
          - graph_capture: {graph: g, stream: s, ops: [nccl_all_gather: {comm: world, stream: s, send_buffer: a, recv_buffer: b, size: 1KiB * 4 ** i, type: float32}]}
          - region: {name: small_graph, ops: [graph_launch: {graph: g, stream: s}, stream_synchronize: {stream: s}]}
    - repeat:
        index: i
        times: 2
        ops:
          - region: {name: large, ops: [nccl_all_gather: {comm: world, stream: s, send_buffer: a, recv_buffer: b, size: 1MiB * 4 ** i, type: float32}, stream_synchronize: {stream: s}]}
)";
}

std::map<std::string, Standing> standings(const FitData& data) {
  std::map<std::string, Standing> result;
  for (const FitTarget& target : data.targets) result[target.region] = target.standing;
  return result;
}

const std::string kOneRegion = R"(name: x
threads:
  main:
    - region: {name: r, ops: [host_compute: {duration: 1us}]}
)";

FitData data_of(const std::string& text, const HoldOut& hold_out) {
  FitData data;
  const Program program = program_from(text);
  add_run(data, program, measured_on(program, fixed_machine()), hold_out);
  return data;
}

TEST(FitData, ARunIsPredictedForTheHostThatItHad) {
  FitData data;
  const Program program = program_from(R"(name: calibrate_x
threads:
  main:
    - region: {name: r, ops: [{repeat: {times: 50, ops: [{spin: {duration: 10ns}}]}}]}
)");
  const auto machine = std::make_shared<const Machine>(load_machine("h200-nvswitch-8"));
  for (const std::int64_t launch_ns : {4000, 2000, 4000}) {
    Timeline measured = measured_on(program, *machine);
    ProcessStart start;
    start.launch_ns = {launch_ns};
    measured.origin.starts = {start};
    add_run(data, program, measured, {});
  }
  EXPECT_NEAR(*host_factor(data, *machine), 3850.0 / 4000, 0.001) << "the median's";
  tell_hosts_apart(data, *machine);
  EXPECT_EQ(data.runs[0].host, 1);
  EXPECT_EQ(data.runs[1].host, 2) << "twice as fast as in the median";
  const auto ns = predict_runs(data, {{machine, 0}, {machine, 1}});
  EXPECT_NEAR(ns[1][0] / ns[0][0], 0.5, 0.05);
}

TEST(FitData, ALaunchInTwoProcessesTakesLongerOnTheSameHost) {
  FitData data;
  const Machine machine = load_machine("h200-nvswitch-8");
  for (const int processes : {1, 2, 4, 2}) {
    const Program program = program_from(fmt::format(R"(name: calibrate_x
processes: {}
threads:
  main:
    - region: {{name: r, ops: [spin: {{duration: 1us}}]}}
)",
                                                     processes));
    Timeline measured = measured_on(program, machine);
    ProcessStart start;
    start.launch_ns = {processes == 1 ? 3850 : 4312};
    measured.origin.starts = {start};
    add_run(data, program, measured, {});
  }
  data.runs.back().launch_ns = 1;  // nobody's host
  tell_hosts_apart(data, machine);
  for (const FitRun& run : data.runs) EXPECT_NEAR(run.host, 1, 1e-3);
}

TEST(FitData, HoldsOutEveryOtherSizeThroughAllLoopsOfASweep) {
  const auto found = standings(data_of(sweep("nccl_x", 2), {}));
  EXPECT_EQ(found.at("small [0]"), Standing::Fit);
  EXPECT_EQ(found.at("small [1]"), Standing::HeldOutSize);
  EXPECT_EQ(found.at("small [2]"), Standing::Fit);
  EXPECT_EQ(found.at("small_graph [1]"), Standing::HeldOutSize) << "the same size as a graph";
  EXPECT_EQ(found.at("large [0]"), Standing::HeldOutSize) << "the fourth size";
  EXPECT_EQ(found.at("large [1]"), Standing::Fit);
}

TEST(FitData, HoldsOutANumberOfRanksCompletely) {
  for (const auto& [region, standing] :
       standings(data_of(sweep("x", 4), parse_hold_out({"ranks=4"})))) {
    EXPECT_EQ(standing, Standing::HeldOutRanks) << region;
  }
  EXPECT_EQ(standings(data_of(sweep("x", 2), parse_hold_out({"ranks=4"}))).at("small [0]"),
            Standing::Fit);
}

TEST(FitData, HoldsOutNothingOrAScenarioWhenToldSo) {
  EXPECT_EQ(standings(data_of(sweep("x", 2), parse_hold_out({"none"}))).at("small [1]"),
            Standing::Fit);
  EXPECT_EQ(standings(data_of(sweep("x", 2), parse_hold_out({"scenario=x"}))).at("small [0]"),
            Standing::Validation);
  EXPECT_EQ(
      standings(data_of(sweep("nccl_x", 2), parse_hold_out({"scenario=nccl_*"}))).at("small [0]"),
      Standing::Validation);
  EXPECT_EQ(
      standings(data_of(sweep("nccl_x", 2), parse_hold_out({"scenario=nccl"}))).at("small [0]"),
      Standing::Fit);
  HoldOut learning;
  learning.learn = {"x"};
  EXPECT_EQ(standings(data_of(kOneRegion, learning)).at("r"), Standing::Fit);
  EXPECT_EQ(standings(data_of(kOneRegion, {})).at("r"), Standing::Validation);
  EXPECT_THROW(parse_hold_out({"rank=4"}), UsageError);
  EXPECT_THROW(parse_hold_out({"ranks=many"}), UsageError);
}

TEST(FitData, LearnsFromCalibrationScenariosOnly) {
  const std::string ops = R"(
threads:
  main:
    - region: {name: r, ops: [host_compute: {duration: 1us}]}
)";
  EXPECT_EQ(standings(data_of("name: calibrate_x" + ops, {})).at("r"), Standing::Fit);
  EXPECT_EQ(standings(data_of("name: training_step" + ops, {})).at("r"), Standing::Validation);
}

TEST(FitData, KnowsWhatARegionIsAbout) {
  const FitData data = data_of(sweep("nccl_x", 2), {});
  const auto classes = classify(data, load_machine("h200-nvswitch-8"));
  std::map<std::string, TargetClass> by_region;
  for (std::size_t i = 0; i < classes.size(); ++i) by_region[data.targets[i].region] = classes[i];
  EXPECT_EQ(by_region.at("small [0]").name, "NCCL all_gather LL, host");
  EXPECT_EQ(by_region.at("small [0]").bytes, 2048U) << "of both ranks, as nccl-tests counts";
  EXPECT_EQ(by_region.at("small_graph [0]").name, "NCCL all_gather LL, graph");
  EXPECT_EQ(by_region.at("large [1]").name, "NCCL all_gather Simple, host");
}

TEST(FitData, TellsCopiesKernelsAndHostCallsApart) {
  const Program program = program_from(R"(name: calibrate_x
streams: {s: {}}
buffers: {h: {memory: pinned, size: 4KiB}, x: {memory: device, size: 4KiB}}
threads:
  main:
    - region: {name: issue, ops: [memcpy_async: {stream: s, src: h, dst: x}]}
    - region: {name: copy, ops: [memcpy_async: {stream: s, src: h, dst: x}, stream_synchronize: {stream: s}]}
    - region: {name: kernel, ops: [spin: {stream: s, duration: 1us}, stream_synchronize: {stream: s}]}
)");
  const RegionReader reader{program};
  std::map<std::string, std::string> groups;
  for (const OpInfo& info : index_ops(program)) {
    if (const auto* region = std::get_if<Region>(&info.op->kind)) {
      groups[region->name] = reader.content(info.op->id.value, 0).group;
    }
  }
  EXPECT_EQ(groups.at("issue"), "host calls");
  EXPECT_EQ(groups.at("copy"), "copies");
  EXPECT_EQ(groups.at("kernel"), "kernels");
}

class FitFiles : public testing::Test {
 protected:
  FitFiles()
      : root_{fs::path{testing::TempDir()} /
              testing::UnitTest::GetInstance()->current_test_info()->name()} {
    fs::remove_all(root_);
  }
  ~FitFiles() override { fs::remove_all(root_); }

  /// A run that carries its scenario, as calibrate writes it.
  void write_run(const std::string& place, const std::string& parameters, double factor,
                 const std::string& text) const {
    fs::create_directories(root_ / place);
    std::ofstream{root_ / place / "test.yaml"} << "schema_version: 1\n" << text;
    std::string with = text;
    if (const auto at = with.find("times: 2"); !parameters.empty() && at != std::string::npos) {
      with.replace(at, 8, "times: 3");
    }
    Timeline timeline = measured_on(program_from(with), fixed_machine(),
                                    [=](const std::string&, std::uint64_t, int) { return factor; });
    if (!parameters.empty()) timeline.origin.versions["parameters"] = parameters;
    write_timeline(timeline, root_ / place / kMeasuredFile);
  }

  fs::path root_;
};

const std::string kParameterised = R"(name: calibrate_x
parameters: {n: 2}
threads:
  main:
    - region: {name: r, ops: [repeat: {times: $n, ops: [host_compute: {duration: 1ms}]}]}
)";

TEST_F(FitFiles, FindsTheProgramByTheParametersThatAMeasurementNotes) {
  fs::create_directories(root_ / "run");
  std::ofstream{root_ / "run" / "test.yaml"} << "schema_version: 1\n" << kParameterised;
  std::string expanded = kParameterised;
  expanded.replace(expanded.find("n: 2"), 4, "n: 7");
  Timeline timeline = measured_on(program_from(expanded), fixed_machine());
  timeline.origin.versions["parameters"] = "n=7";
  write_timeline(timeline, root_ / "run" / kMeasuredFile);
  EXPECT_THAT(load_fit_data({root_}, {}).runs, SizeIs(1));
  timeline.origin.versions.erase("parameters");
  fs::remove(root_ / "run" / kMeasuredFile);  // what this process has read is never written over
  write_timeline(timeline, root_ / "run" / kMeasuredFile);
  EXPECT_THROW(load_fit_data({root_}, {}), UsageError) << "the file gives another program";
}

TEST_F(FitFiles, StartsOfOneProgramCountTogether) {
  write_run("monday/a", "", 1, kParameterised);
  write_run("tuesday/a", "", 3, kParameterised);
  const FitData data = load_fit_data({root_}, {});
  ASSERT_THAT(data.targets, SizeIs(1));
  EXPECT_NEAR(data.targets[0].measured_ns, 4e6, 1e4) << "the median of both starts";
  EXPECT_GT(data.targets[0].spread, 0.4);
}

TEST_F(FitFiles, ARunThatDidNotCompleteIsLeftOutAndNamed) {
  write_run("good", "", 1, kParameterised);
  fs::create_directories(root_ / "bad");
  Timeline hung = read_timeline(root_ / "good" / kMeasuredFile);
  hung.outcome.kind = Outcome::Kind::Timeout;
  write_timeline(hung, root_ / "bad" / kMeasuredFile);
  const FitData data = load_fit_data({root_}, {});
  EXPECT_THAT(data.runs, SizeIs(1));
  EXPECT_THAT(data.left_out, ElementsAre(HasSubstr("bad")));
}

TEST(NewMachine, HasAHostAsFastAsItsLaunches) {
  const std::string one = R"({"gpus": [{"name": "NVIDIA H200", "sm_count": 132}]})";
  const Machine plain = new_machine("mine", one, "environment.json");
  Machine moved = plain;
  move_to_host(moved, 1.25);
  EXPECT_EQ(moved.name, "mine");
  EXPECT_DOUBLE_EQ(moved.get(Param::HostMalloc).value, plain.get(Param::HostMalloc).value / 1.25);
  EXPECT_EQ(moved.get(Param::HostMalloc).spread, plain.get(Param::HostMalloc).spread);
  EXPECT_EQ(prior_unit(moved.get(Param::HostMalloc)), prior_unit(plain.get(Param::HostMalloc)));
  EXPECT_THAT(moved.get(Param::HostMalloc).from, HasSubstr("for a host 1.25 times as fast"));
  EXPECT_EQ(moved.get(Param::ProductsHalfRate).from, plain.get(Param::ProductsHalfRate).from);
  EXPECT_TRUE(read_machine(machine_text(moved), "mine.yaml").has_value());
}

TEST_F(FitFiles, ANewMachineKnowsWhatTheMeasurementSaysOfIt) {
  fs::create_directories(root_);
  std::ofstream{root_ / "environment.json"} << R"({"schema_version": 1,
    "gpus": [{"name": "NVIDIA X", "sm_count": 99, "memory_bytes": 80000000000, "copy_engines": 2,
              "l2_bytes": 40000000},
             {"name": "NVIDIA X", "sm_count": 99, "memory_bytes": 80000000000}],
    "host": {"memory": "1000 kB"}, "software": {"nccl": "2.27.5"},
    "variables": {"NCCL_NVLS_ENABLE": "0"}})";
  const Machine machine = new_machine("mine", root_ / "environment.json");
  EXPECT_EQ(machine.name, "mine");
  EXPECT_EQ(machine.gpu_name, "NVIDIA X");
  EXPECT_EQ(machine.gpus_per_node, 2U);
  EXPECT_EQ(machine.nccl_version, "2.27.5");
  EXPECT_EQ(machine.count(Param::SmCount), 99U);
  EXPECT_EQ(machine.get(Param::SmCount).source, ParameterClass::Datasheet);
  EXPECT_EQ(machine.get(Param::HostMemory).value, 1024000);
  EXPECT_EQ(machine.get(Param::L2Size).value, 22e6) << "what it keeps";
  EXPECT_EQ(machine.get(Param::HostLaunchKernel).source, ParameterClass::Assumed);
  EXPECT_EQ(machine.get(Param::HostLaunchKernel).from, "as h200-nvswitch-8");
  EXPECT_FALSE(machine.get(Param::HostLaunchKernel).is_learned()) << "an H200 is another GPU";
  EXPECT_TRUE(read_machine(machine_text(machine), "mine.yaml").has_value());
  EXPECT_THROW(new_machine("mine", {}), UsageError);
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  try {
    new_machine("mine", deep, "environment.json");
    ADD_FAILURE() << "read";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("more than 64 brackets in one another"));
  }
  EXPECT_EQ(machine.get(Param::ProductsHalfRate).spread, 0);
  const std::string same =
      R"({"gpus": [{"name": "NVIDIA H200", "sm_count": 132, "l2_bytes": 62914560}]})";
  const Machine another = new_machine("mine", same, "environment.json");
  EXPECT_EQ(another.get(Param::L2Size).value,
            load_machine("h200-nvswitch-8").get(Param::L2Size).value);
  EXPECT_EQ(another.get(Param::ProductsHalfRate).spread, 0.05) << "GPUs of a kind are alike";
  EXPECT_EQ(another.get(Param::HostLaunchKernel).spread, 0.25) << "their hosts are not";
  EXPECT_EQ(another.get(Param::HostClearBandwidth).value,
            load_machine("h200-1").get(Param::HostClearBandwidth).value)
      << "its host is like that of one such GPU, not of eight";
  const std::string two = R"({"gpus": [{"name": "NVIDIA H200"}, {"name": "NVIDIA H200"}]})";
  EXPECT_EQ(new_machine("pair", two, "environment.json").get(Param::HostClearBandwidth).value,
            load_machine("h200-nvswitch-8").get(Param::HostClearBandwidth).value);
  const std::string older = R"({"gpus": [{"name": "NVIDIA H100 80GB HBM3", "sm_count": 132}]})";
  const Machine h100 = new_machine("older", older, "environment.json");
  EXPECT_EQ(h100.get(Param::ProductsHalfRate).value,
            load_machine("h100-nvswitch-8").get(Param::ProductsHalfRate).value);
  EXPECT_EQ(h100.get(Param::ProductsHalfRate).spread, 0.05);
  EXPECT_EQ(h100.get(Param::BlindProducts).trusted_as(), ParameterClass::Fit)
      << "programs were as far off on GPUs of the kind";
  EXPECT_NE(another.get(Param::BlindProducts).value, h100.get(Param::BlindProducts).value);
  EXPECT_EQ(machine.get(Param::BlindProducts).trusted_as(), ParameterClass::Assumed);
}

TEST(FitSources, NameTheCalibrationScenariosThatAParameterDecides) {
  const Param wanted[] = {Param::HostMalloc, Param::EventLatency, Param::KernelGap};
  const DeterminedBy determined = determined_by(load_machine("h200-nvswitch-8"), wanted);
  EXPECT_GT(determined.size(), 90U);
  EXPECT_THAT(determined.at(Param::HostMalloc), ElementsAre("scenarios/calibration/memory.yaml"));
  EXPECT_THAT(advice_for(Param::HostMalloc, determined), "scenarios/calibration/memory.yaml");
  EXPECT_THAT(advice_for(Param::H2dBandwidth, determined),
              HasSubstr("scenarios/calibration/copies.yaml"));
  EXPECT_THAT(advice_for(Param::EventLatency, determined),
              HasSubstr("scenarios/calibration/latencies.yaml"))
      << "it passes between spans, so no share shows it";
  EXPECT_FALSE(determined.contains(Param::CopyGap)) << "the same, and nobody asked";
  EXPECT_THAT(advice_for(Param::NcclNetEfficiency, determined), HasSubstr("give it by hand"));
}

}  // namespace
}  // namespace foretrace::test
