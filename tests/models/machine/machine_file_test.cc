// Machine files: read as strictly as scenarios, written so that they read back.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "models/machine/machine.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/read/scenario.h"

namespace foretrace {
namespace {

using testing::HasSubstr;

/// `parameters` begins in line 9.
std::string file_with(const std::string& parameters) {
  std::string text =
      "schema_version: 2\nname: m\nnode: {gpus: 2, gpu: Test}\nsources:\n"
      "  here: {class: fit, text: t, learned_from: [{scenario: x}], command: c}\n"
      "  sheet: {class: datasheet, text: t}\n"
      "  guess: {class: assumed, text: t}\n"
      "parameters:\n" +
      parameters;
  for (const char* id : {"here", "sheet", "guess"}) {
    if (parameters.find(std::string{"source: "} + id) != parameters.npos) continue;
    // An unused source is an error of its own; the lines stay where they are.
    const auto at = text.find(std::string{"  "} + id + ":");
    text.replace(at, text.find('\n', at) - at, "#");
  }
  return text;
}

std::string errors_of(const std::string& parameters) {
  const std::string text = file_with(parameters);
  const auto machine = read_machine(text, "m.yaml");
  return machine ? "" : render(machine.error(), text);
}

TEST(MachineFile, GivesValuesInSiUnits) {
  const auto machine = read_machine(
      file_with("  host.launch_kernel: {value: 3.2us, source: here, range: all, spread: 4%}\n"
                "  copy.h2d_bandwidth: {value: 55.5 GB/s, source: sheet}\n"
                "  gpu.float32_flops: {value: 52.5 TFLOP/s, source: guess}\n"),
      "m.yaml");
  ASSERT_TRUE(machine.has_value());
  EXPECT_EQ(machine->time(Param::HostLaunchKernel), Duration{3'200'000});
  EXPECT_DOUBLE_EQ(machine->get(Param::HostLaunchKernel).spread, 0.04);
  EXPECT_EQ(machine->get(Param::HostLaunchKernel).source, ParameterClass::Fit);
  EXPECT_DOUBLE_EQ(machine->rate(Param::H2dBandwidth), 55.5e9);
  EXPECT_DOUBLE_EQ(machine->rate(Param::GpuF32Flops), 52.5e12);
}

TEST(MachineFile, CountsWhatIsCountedInWholeNumbers) {
  const std::string text = errors_of(
      "  gpu.sm_count: {value: 1.5, source: sheet}\n"
      "  gpu.copy_engines: {value: 2.5, source: sheet}\n");
  EXPECT_THAT(text, HasSubstr("m.yaml:9:25: error: gpu.sm_count is a whole number"));
  EXPECT_THAT(text, HasSubstr("gpu.copy_engines is a whole number"));
}

TEST(MachineFile, HasANameOfOneLine) {
  for (const std::string& name :
       {std::string{"\"a\\nb\""}, std::string{"\"a\\u2028b\""}, std::string(201, 'x')}) {
    const std::string text =
        "schema_version: 2\nname: " + name + "\nnode: {gpus: 2, gpu: T}\nparameters: {}\n";
    const auto machine = read_machine(text, "m.yaml");
    ASSERT_FALSE(machine.has_value()) << name;
    EXPECT_THAT(render(machine.error(), text), HasSubstr("'name' is one line, 200 bytes at most"));
  }
}

TEST(MachineFile, NamesAnUnknownParameterAndTheOneThatWasMeant) {
  const std::string text = errors_of("  host.launch_kernal: {value: 3us, source: here}\n");
  EXPECT_THAT(text, HasSubstr("m.yaml:9:3: error: unknown key 'host.launch_kernal'"));
  EXPECT_THAT(text, HasSubstr("did you mean 'host.launch_kernel'?"));
}

TEST(MachineFile, RefusesWrongUnitsUnknownSourcesAndNegativeValuesAtOnce) {
  const std::string text = errors_of(
      "  host.launch_kernel: {value: 3 GB/s, source: here}\n"
      "  copy.h2d_bandwidth: {value: 55 GB/s, source: gues}\n"
      "  host.query: {value: 0us - 1us, source: here}\n");
  EXPECT_THAT(text, HasSubstr("m.yaml:9:"));
  EXPECT_THAT(text, HasSubstr("no source 'gues' stands under sources:"));
  EXPECT_THAT(text, HasSubstr("host.query must be positive"));
}

TEST(MachineFile, ReadsBackWhatItWrites) {
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    const auto again = read_machine(machine_text(machine), "again.yaml");
    ASSERT_TRUE(again.has_value()) << name;
    EXPECT_EQ(machine_text(*again), machine_text(machine)) << name;
  }
}

// ---- based on another ----------------------------------------------------------------------

std::string based_on(const std::string& base, const std::string& parameters = "") {
  return "schema_version: 2\nname: m\nbased_on: " + base + "\nnode: {gpus: 2, gpu: Test}\n" +
         parameters;
}

TEST(MachineFile, TakesWhatItDoesNotSayFromItsBaseAsAnAssumption) {
  const Machine base = load_machine("v100-pcie-4");
  const auto machine =
      read_machine(based_on("v100-pcie-4",
                            "sources: {s: {class: datasheet, text: t}}\n"
                            "parameters:\n  gpu.sm_count: {value: 6, source: s}\n"),
                   "m.yaml");
  ASSERT_TRUE(machine.has_value());
  EXPECT_EQ(machine->based_on, "v100-pcie-4");
  EXPECT_EQ(machine->nccl_version, base.nccl_version);
  EXPECT_EQ(machine->gpus_per_node, 2u) << "the node is its own";
  EXPECT_EQ(machine->get(Param::SmCount).value, 6);
  EXPECT_EQ(machine->get(Param::SmCount).source, ParameterClass::Datasheet);
  const ParamValue& inherited = machine->get(Param::H2dBandwidth);
  EXPECT_EQ(inherited.value, base.get(Param::H2dBandwidth).value);
  EXPECT_EQ(inherited.source, ParameterClass::Assumed) << "it was not measured on this machine";
  EXPECT_EQ(inherited.from, "as v100-pcie-4");
}

TEST(MachineFile, ThatIsBasedOnAnotherGpuLearnedFromNothingThere) {
  const auto inherits = [](const std::string& gpu) {
    const auto machine = read_machine(
        "schema_version: 2\nname: m\nbased_on: h200-nvswitch-8\n"
        "node: {gpus: 2, gpu: " +
            gpu + "}\n",
        "m.yaml");
    const ParamValue& value = machine->get(Param::H2dBandwidth);
    EXPECT_EQ(value.source, ParameterClass::Assumed);
    return value.is_learned();
  };
  EXPECT_TRUE(inherits("NVIDIA H200")) << "the same measurements cannot judge it";
  EXPECT_FALSE(inherits("NVIDIA A100")) << "nobody has seen that GPU's measurements";
}

TEST(MachineFile, OfTheVersionBeforeSaysSoAndNoMore) {
  const std::string text = "schema_version: 1\nname: m\nfit_scenarios: [x]\n";
  const auto machine = read_machine(text, "m.yaml");
  ASSERT_FALSE(machine.has_value());
  EXPECT_EQ(machine.error().size(), 1u);
  EXPECT_THAT(render(machine.error(), text), HasSubstr("this foretrace reads version 2"));
}

TEST(MachineFile, NeedsNoParametersOfItsOwnWithABase) {
  const auto machine = read_machine(based_on("v100-pcie-4"), "m.yaml");
  ASSERT_TRUE(machine.has_value());
  EXPECT_EQ(machine->time(Param::HostLaunchKernel),
            load_machine("v100-pcie-4").time(Param::HostLaunchKernel));
  const std::string alone = "schema_version: 2\nname: m\nnode: {gpus: 2, gpu: Test}\n";
  const auto refused = read_machine(alone, "m.yaml");
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(render(refused.error(), alone), HasSubstr("parameters"));
}

TEST(MachineFile, IsBasedOnAMachineThatThereIs) {
  const std::string text = based_on("v100-pcie-5");
  const auto machine = read_machine(text, "m.yaml");
  ASSERT_FALSE(machine.has_value());
  EXPECT_THAT(render(machine.error(), text), HasSubstr("m.yaml:3:11: error: unknown machine"));
  EXPECT_THAT(render(machine.error(), text), HasSubstr("did you mean 'v100-pcie-4'?"));
}

TEST(MachineFile, MayBeBasedOnOneThatIsBasedOnAnother) {
  const Machine base = load_machine("gtx-1050-ti");
  const auto machine = read_machine(based_on("gtx-1050-ti"), "m.yaml");
  ASSERT_TRUE(machine.has_value());
  EXPECT_EQ(machine->get(Param::HbmBandwidth).value, base.get(Param::HbmBandwidth).value);
}

TEST(MachineFile, LeavesOutFamiliesOfParametersOfItsBase) {
  const std::string text = based_on("h200-nvswitch-8");
  ASSERT_TRUE(read_machine(text, "m.yaml")->has(Param::ProductsStart));
  const auto machine = read_machine(text + "without: [products]\n", "m.yaml");
  ASSERT_TRUE(machine.has_value());
  EXPECT_FALSE(machine->has(Param::ProductsStart));
  EXPECT_TRUE(machine->has(Param::GpuHalfFlops));
  const std::string wrong = text + "without: [product]\n";
  EXPECT_THAT(render(read_machine(wrong, "m.yaml").error(), wrong),
              HasSubstr("no parameter begins with 'product.'"));
}

TEST(MachineFile, ThatIsUnknownIsTheUsersError) {
  EXPECT_THROW(load_machine("h200-nvswitch-9"), UsageError);
}

TEST(Machine, SaysWhichParameterAProgramNeedsAndItLacks) {
  const auto machine =
      read_machine(file_with("  gpu.sm_count: {value: 1, source: here}\n"), "m.yaml");
  ASSERT_TRUE(machine.has_value());
  try {
    machine->time(Param::HostLaunchKernel);
    FAIL() << "it has none";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("machine 'm' has no parameter 'host.launch_kernel'"));
  }
}

Program program_of(const std::string& text) {
  return read_scenario("schema_version: 1\nname: t\n" + text, "t.yaml")->program;
}

TEST(CheckFits, RefusesMoreGpusThanTheMachineHas) {
  const Machine machine = load_machine("v100-pcie-4");
  const Program program =
      program_of("nodes: 1\nprocesses: 5\nthreads: {main: [host_barrier: {}]}\n");
  ASSERT_EQ(check_fits(program, machine).size(), 1u);
  EXPECT_THAT(check_fits(program, machine)[0].message, HasSubstr("needs 1 node(s) with 5 GPU(s)"));
}

TEST(CheckFits, TakesAsManyNodesAsTheProcessesFill) {
  const Machine machine = load_machine("v100-pcie-4");
  for (const auto& [processes, nodes] : {std::pair{4, 1U}, {8, 2U}, {6, 2U}, {10, 5U}, {5, 5U}}) {
    const Program program = program_of(
        fmt::format("processes: {}\nthreads: {{main: [host_barrier: {{}}]}}\n", processes));
    EXPECT_EQ(nodes_of(program, machine), nodes) << processes;
    EXPECT_TRUE(check_fits(program, machine).empty());
  }
}

TEST(CheckFits, RefusesFaultsOfPartsThatNodesDoNotHave) {
  const Machine machine = load_machine("v100-pcie-4");
  const Program program = program_of(
      "processes: 8\nfabric: none\nfaults: [{node: 2, nic: 0, lost: true}, {gpu: 4, speed: 50%}]\n"
      "threads: {main: [host_barrier: {}]}\n");
  const Diagnostics problems = check_fits(program, machine);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_THAT(problems[0].message, HasSubstr("a fault of node 2: there are 2 nodes"));
  EXPECT_THAT(problems[1].message, HasSubstr("a fault of GPU 4"));
}

TEST(MachineFile, KeepsItsFabricAndItsFaults) {
  Machine machine = load_machine("h200-nvswitch-8");
  const std::string text = machine_text(machine);
  const std::string node = text.substr(0, text.find("sources:"));
  const std::string with =
      node +
      "fabric: {kind: dragonfly, leaf: {ports: 16, latency: 1us}, group: {leaves: 8}, spine: "
      "{oversubscription: 3:1}}\nfaults: [{node: 7, nic: 3, bandwidth: 50%}, {gpu: all, jitter: "
      "5%}, {leaf: 2, bandwidth: 25%}]\n" +
      text.substr(node.size());
  const auto read = read_machine(with, "m.yaml");
  ASSERT_TRUE(read.has_value()) << render(read.error(), with);
  const Fabric fabric{FabricKind::Dragonfly, 16, 1e-6, 3, 8};
  EXPECT_EQ(read->fabric, fabric);
  ASSERT_EQ(read->faults.size(), 3u);
  EXPECT_TRUE(read->faults[0].is_of(7, 3) && !read->faults[0].is_of(7, 2));
  EXPECT_EQ(read->faults[1].jitter, 0.05);
  const auto again = read_machine(machine_text(*read), "m.yaml");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->fabric, fabric);
  EXPECT_EQ(machine_text(*again), machine_text(*read));
}

TEST(CheckFits, RefusesMoreMemoryThanADeviceOrANodeHas) {
  const Machine machine = load_machine("v100-pcie-4");
  const Program device = program_of(
      "buffers: {x: {memory: device, size: 9 GB, count: 2}}\nthreads: {main: [host_barrier: "
      "{}]}\n");
  ASSERT_EQ(check_fits(device, machine).size(), 1u);
  EXPECT_THAT(check_fits(device, machine)[0].message, HasSubstr("need 16.8 GiB, a GPU of"));
  EXPECT_THAT(check_fits(device, machine)[0].hint, HasSubstr("largest: 'x' 2 of 8.4 GiB each;"));
  const Program host = program_of(
      "processes: 2\nbuffers: {x: {memory: pinned, size: 200GiB}}\n"
      "threads: {main: [host_barrier: {}]}\n");
  EXPECT_EQ(check_fits(host, machine).size(), 1u)
      << "200 GiB in each of two processes, 244 GiB there";
}

/// A base is read once; one that was edited is another one.
TEST(MachineFile, IsBasedOnWhatTheOtherFileSaysNow) {
  const auto directory = std::filesystem::path{::testing::TempDir()} / "bases";
  std::filesystem::create_directories(directory);
  const auto base_of = [&](const char* gaps) {
    std::ofstream{directory / "base.yaml"}
        << "schema_version: 2\nname: base\nnode: {gpus: 2, gpu: Test}\nsources:\n"
           "  guess: {class: assumed, text: t}\nparameters:\n"
           "  gpu.sm_count: {value: "
        << gaps << ", source: guess}\n";
    return read_machine("schema_version: 2\nname: m\nbased_on: base\nnode: {gpus: 2, gpu: Test}\n",
                        "m.yaml");
  };
  ::setenv("FORETRACE_MACHINES", directory.c_str(), 1);
  const auto first = base_of("7"), again = base_of("7"), edited = base_of("8");
  ::unsetenv("FORETRACE_MACHINES");
  for (const auto* machine : {&first, &again, &edited}) {
    ASSERT_TRUE(machine->has_value()) << render(machine->error(), "");
  }
  EXPECT_EQ(first->count(Param::SmCount), 7U);
  EXPECT_EQ(again->count(Param::SmCount), 7U);
  EXPECT_EQ(edited->count(Param::SmCount), 8U);
}

}  // namespace
}  // namespace foretrace
