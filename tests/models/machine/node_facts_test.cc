// What a machine file says of its nodes, and what NCCL's topology makes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/machine/machine.h"
#include "models/nccl/topology/machine.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

using testing::HasSubstr;

std::string file(const std::string& node) {
  return "schema_version: 2\nname: m\nnode: {count: 4, gpus: 4, gpu: A100" + node +
         "}\nsources: {s: {class: datasheet, text: t}}\n"
         "parameters:\n  gpu.sm_count: {value: 108, source: s}\n";
}

Machine machine_of(const std::string& node) {
  const auto machine = read_machine(file(node), "m.yaml");
  EXPECT_TRUE(machine.has_value());
  return *machine;
}

std::string errors_of_node(const std::string& node) {
  const auto machine = read_machine(file(node), "m.yaml");
  return machine ? "" : render(machine.error(), file(node));
}

TEST(NodeFacts, StandInPlaceOfWhatTheKindOfGpuIsSoldWith) {
  const Machine machine = machine_of(
      ", link: nvswitch, cpu: arm, sockets: 4, pcie: 5, nics: 2, nic_bandwidth: 12.5 GB/s, "
      "nic_path: phb");
  const nccl::Topology topology = nccl::topology_of(machine, 8, 2);
  EXPECT_EQ(topology.link, nccl::Link::NvSwitch);
  EXPECT_EQ(topology.cpu, nccl::Cpu::Arm);
  EXPECT_EQ(topology.sockets, 4u);
  EXPECT_EQ(topology.pci_gbps, 48.F);
  EXPECT_EQ(topology.nics, 2u);
  EXPECT_EQ(topology.nic_gbps, 12.5F);
  EXPECT_EQ(topology.nic_path, nccl::Path::Phb);
}

TEST(NodeFacts, LeaveTheKindsOwnWhereTheyAreSilent) {
  const nccl::Topology topology = nccl::topology_of(machine_of(""), 4, 1);
  EXPECT_EQ(topology.link, nccl::Link::NvLinkMesh);
  EXPECT_EQ(topology.cpu, nccl::Cpu::Amd);
  EXPECT_EQ(topology.pci_gbps, 24.F);
  EXPECT_EQ(topology.nics, 4u);
  EXPECT_EQ(topology.nic_path, nccl::Path::Pix);
}

TEST(NodeFacts, NameTheirGpuInAWord) {
  const std::string text = "schema_version: 2\nname: m\nnode: {gpus: 4, gpu: [a]}\n";
  const auto machine = read_machine(text, "m.yaml");
  ASSERT_FALSE(machine);
  EXPECT_THAT(render(machine.error(), text), HasSubstr("m.yaml:3:22: error: 'gpu' is a name"));
}

TEST(NodeFacts, GpusThatDoNotTakePartLeaveTheirShareOfTheNics) {
  EXPECT_EQ(nccl::topology_of(machine_of(", nics: 4"), 4, 2).nics, 2u);
  EXPECT_EQ(nccl::topology_of(machine_of(", nics: 1"), 4, 2).nics, 1u);
}

TEST(NodeFacts, MakeNcclLeaveOutLL128WhereGpuAndNicMeetAtTheHost) {
  const auto rule = [](const std::string& node) {
    Machine machine = machine_of(node);
    machine.gpu_name = "NVIDIA GH200 120GB";
    const nccl::Tuning tuning = nccl::tuning_of(machine, 8, 2);
    for (const nccl::Candidate& candidate : nccl::priced_candidates(tuning, {})) {
      if (candidate.algorithm == nccl::Algorithm::Ring &&
          candidate.protocol == nccl::Protocol::LL128) {
        return candidate.out;
      }
    }
    return std::string{"not there"};
  };
  EXPECT_EQ(rule(", nic_path: pix"), "");
  EXPECT_THAT(rule(", nic_path: phb"), HasSubstr("LL128 is not safe over PHB to the NIC"));
}

TEST(NodeFacts, WhatIsImpossibleIsAnErrorThatSaysWhatIsPossible) {
  const std::string text = errors_of_node(
      ", link: nvlink, cpu: amdd, pcie: 9, nics: 0, nic_bandwidth: 25, nic_path: sys");
  EXPECT_THAT(text, HasSubstr("unknown link 'nvlink'"));
  EXPECT_THAT(text, HasSubstr("did you mean 'amd'?"));
  EXPECT_THAT(text, HasSubstr("pcie: '9' is not a count between 3 and 5"));
  EXPECT_THAT(text, HasSubstr("nics: '0' is not a count between 1 and 256"));
  EXPECT_THAT(text, HasSubstr("nic_bandwidth: '25' is not a bandwidth"));
  EXPECT_THAT(text, HasSubstr("unknown nic_path 'sys'"));
}

TEST(NodeFacts, AGpuWithoutNvlinksCannotBeLinkedByThem) {
  Machine machine = machine_of(", link: nvswitch");
  machine.gpu_name = "NVIDIA GeForce RTX 4090";
  EXPECT_THROW(static_cast<void>(nccl::topology_of(machine, 4, 1)), UsageError);
}

}  // namespace
}  // namespace foretrace
