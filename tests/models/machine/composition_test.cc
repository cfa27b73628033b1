// Machines by what they are made of: their names, what is wrong with one, and what follows from
// facts.
#include "models/machine/parts/composition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/machine/parts/kinds.h"
#include "models/machine/parts/rules.h"
#include "models/nccl/time/collective_time.h"
#include "models/nccl/topology/machine.h"
#include "models/trust/blind.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refused_name(const std::string& name) {
  try {
    load_machine(name);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Composition, NamesCountGpuHostLinkNetworkAndNodes) {
  const auto made = parse_composition("8xh100-sxm@epyc-7r13/nvswitch3+efa2:64");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->gpus, 8u);
  EXPECT_EQ(made->gpu, "H100-SXM") << "in any case";
  EXPECT_EQ(made->host, "epyc-7r13");
  EXPECT_EQ(made->link, "nvswitch3");
  EXPECT_EQ(made->network, "efa2");
  EXPECT_EQ(made->nodes, 64u);
  EXPECT_EQ(parse_composition("4xA100")->gpu, "A100-SXM-80") << "another name of it";
  EXPECT_FALSE(parse_composition("h200-nvswitch-8"));
}

TEST(Composition, AsAFileIsReadAgainWhateverItsNodeHas) {
  for (const char* const name : {"72xGB200/nvl72", "80xH100-SXM@epyc-7r13/nvswitch3+efa2"}) {
    EXPECT_TRUE(read_machine(machine_text(load_machine(name)), "again.yaml").has_value()) << name;
  }
}

TEST(Composition, SaysWhatIsWrongWithANameAndWhere) {
  EXPECT_THAT(refused_name("8xB20+ib-ndr"),
              AllOf(HasSubstr("unknown GPU 'B20'"), HasSubstr("did you mean 'B200'?"),
                    HasSubstr("  8xB20+ib-ndr\n    ^\n")));
  EXPECT_THAT(refused_name("8xB200+ib-ndx:4"), HasSubstr("did you mean 'ib-ndr'?"));
  EXPECT_THAT(refused_name("8xB200+ib-ndr:0"), HasSubstr("'0' is no number of nodes"));
  EXPECT_THAT(refused_name("0xB200"), HasSubstr("'0' is no number of GPUs"));
  EXPECT_THAT(refused_name("8xB200/"), HasSubstr("a link is missing"));
  EXPECT_THAT(refused_name("8xL40S/nvswitch3"),
              AllOf(HasSubstr("a NVIDIA L40S has no nvswitch3"), HasSubstr("its links: pcie3")));
  EXPECT_THAT(refused_name("8xA100/nvlink-mesh"), HasSubstr("joins at most 4 GPUs, not 8"));
  EXPECT_THAT(refused_name("p5.48xlarg"), HasSubstr("did you mean 'p5.48xlarge'?"));
}

TEST(Composition, KeepsWhatWasFittedForTheGpuItself) {
  const Machine file = load_machine("h100-nvswitch-8"), made = load_machine("8xH100-SXM+ib-ndr:16");
  for (const Param param : {Param::ProductsHalfRate, Param::UnaryBandwidth, Param::GpuMemory,
                            Param::NcclAllReduceLlBase, Param::NcclNetEfficiency}) {
    EXPECT_EQ(made.get(param).value, file.get(param).value) << info(param).key;
    EXPECT_EQ(made.get(param).source, file.get(param).source) << info(param).key;
  }
  EXPECT_EQ(made.nodes, 16u);
  EXPECT_EQ(made.node.nic_bandwidth, 50e9);
}

TEST(Composition, CarriesRatiosOverByTheFactsOfBothGpus) {
  const Machine h200 = load_machine("h200-nvswitch-8"), l40s = load_machine("8xL40S");
  EXPECT_DOUBLE_EQ(l40s.rate(Param::LibrarySoftmaxRate),
                   864.0 / 4800 * h200.rate(Param::LibrarySoftmaxRate));
  EXPECT_DOUBLE_EQ(l40s.rate(Param::LibraryAttentionBackwardRate128),
                   362 / 989.4 * h200.rate(Param::LibraryAttentionBackwardRate128));
  EXPECT_DOUBLE_EQ(l40s.get(Param::KernelBase).value,
                   1980.0 / 2520 * h200.get(Param::KernelBase).value);
  EXPECT_EQ(l40s.get(Param::HostLaunchKernel).value, h200.get(Param::HostLaunchKernel).value);
  EXPECT_EQ(l40s.get(Param::SmCount).value, 142);
  EXPECT_TRUE(l40s.get(Param::LibrarySoftmaxRate).origin->is_carried);
  EXPECT_THAT(l40s.get(Param::LibrarySoftmaxRate).from,
              HasSubstr("carried over from h200-nvswitch-8 by memory_bandwidth"));
}

TEST(Composition, LosesTheClockSoonerWithFewerWattsForTheSameChip) {
  const auto free = [](const char* name) {
    return load_machine(name).get(Param::ProductsFreeRandom).value;
  };
  EXPECT_DOUBLE_EQ(free("8xH100-SXM-96"), free("8xH100-SXM") * 500 / 700);
  EXPECT_DOUBLE_EQ(free("1xH100-NVL"), free("8xH100-SXM") * 400 / 700 * 989.4 / 835.5);
  EXPECT_DOUBLE_EQ(free("1xGH200"), free("8xH200-SXM")) << "its CPU has some of its 900 W";
  EXPECT_DOUBLE_EQ(free("8xL40S"), free("8xH200-SXM")) << "another chip";
}

TEST(Composition, HasTheMemoryThatItsRuntimeReportsAndNotTheMakersGigabytes) {
  const auto memory = [](const char* name) {
    return load_machine(name).get(Param::GpuMemory).value;
  };
  EXPECT_DOUBLE_EQ(memory("1xH200-NVL"), 139.8 * 0x1p30) << "141 GB says the maker";
  EXPECT_DOUBLE_EQ(memory("8xB200"), 178.35 * 0x1p30);
  EXPECT_EQ(memory("8xB200"), memory("b200-nvswitch-8"));
  // What was measured is what PyTorch's messages say, to their last digit.
  EXPECT_NEAR(memory("8xH200-SXM"), 139.8 * 0x1p30, 0.01 * 0x1p30);
  EXPECT_NEAR(memory("8xH100-SXM"), 79.18 * 0x1p30, 0.01 * 0x1p30);
}

TEST(Composition, HasAttentionByFactsWhereNobodyMeasuredIt) {
  for (const char* const name : {"8xL40S", "8xB200", "1xA100", "8xMI300X", "1xH20"}) {
    const Machine machine = load_machine(name);
    EXPECT_FALSE(machine.has(Param::LibraryAttentionForwardRate128)) << name;
    EXPECT_TRUE(machine.has(Param::AttendsShare) && machine.has(Param::BlindAttention)) << name;
  }
  for (const char* const name : {"8xH100", "8xH200", "1xH200-NVL"}) {
    EXPECT_TRUE(load_machine(name).has(Param::LibraryAttentionForwardRate128)) << name;
  }
}

TEST(Composition, TakesLinksFromTheLinkAndNetworksFromTheNetwork) {
  EXPECT_EQ(load_machine("8xL40S/pcie4").rate(Param::NvlinkBandwidth), 24e9);
  EXPECT_EQ(load_machine("72xGB200/nvl72").rate(Param::NvlinkBandwidth), 900e9);
  EXPECT_EQ(load_machine("8xMI300X").rate(Param::NvlinkBandwidth), 448e9);
  EXPECT_EQ(load_machine("8xH200").get(Param::NcclNvls).value, 1);
  EXPECT_EQ(load_machine("8xH200/nvswitch3-no-nvls").get(Param::NcclNvls).value, 0);
  const Machine efa = load_machine("h100-efa-8"), b200 = load_machine("8xB200+efa4:2");
  EXPECT_EQ(b200.get(Param::NcclNetEfficiency).value, efa.get(Param::NcclNetEfficiency).value);
  EXPECT_EQ(*load_machine("8xL40S+tcp-100g").node.nics, 1u);
  EXPECT_EQ(*load_machine("8xA100+efa1").node.nics, 4u);
}

TEST(Composition, LetsGpusShareTheHostsPathsWhereATableOfSuchABoxSaysSo) {
  const auto seconds = [](const char* name, std::uint32_t ranks) {
    const Machine machine = load_machine(name);
    Reading read{machine};
    const nccl::Tuning tuning = nccl::tuning_for(machine, ranks, 1, {});
    const nccl::Call call{.kind = CollectiveKind::AllReduce, .size = {1u << 30}};
    return nccl::collective_time(read, tuning, call).terms.seconds;
  };
  // Of 8 GPUs each gets (2 / 8)^1.85 of what one of two gets, and an all-reduce moves 1.75 times.
  EXPECT_NEAR(seconds("8xL40S/pcie4", 8) / seconds("8xL40S/pcie4", 2), 1.75 * std::pow(4, 1.85),
              0.5);
  EXPECT_LT(seconds("8xL40S/pcie4-switch", 8), seconds("8xL40S/pcie4", 8) / 4)
      << "nobody showed that switches share so";
  EXPECT_LT(load_machine("8xL40S/pcie4").get(Param::BlindTablesLarge).value,
            load_machine("8xL40S/pcie4-switch").get(Param::BlindTablesLarge).value);
}

TEST(Composition, IsAsFarOffOnHostsThatNoTableShowsAsOneBoxByTheOther) {
  const auto off = [](const char* name) {
    return load_machine(name).get(Param::BlindTablesLarge).value;
  };
  EXPECT_GT(off("8xL40S@amd-2s"), 10 * off("8xL40S")) << "another host";
  EXPECT_EQ(off("8xA10G"), off("8xL40S@amd-2s")) << "other cards";
  EXPECT_LT(off("8xRTX-PRO-6000"), 1);
}

TEST(Composition, IsAsFarOffInTablesAsGpusOfItsGenerationAndLinksWere) {
  const auto off = [](const char* name, Param param) {
    return load_machine(name).get(param).value;
  };
  using enum Param;
  EXPECT_LT(off("8xB300", BlindTablesLarge), off("8xV100-SXM", BlindTablesLarge))
      << "a B200 was measured, of Volta no GPU";
  EXPECT_EQ(off("4xGB200", BlindTablesHuge), off("8xB300", BlindTablesHuge));
  EXPECT_NE(off("4xA100-SXM-80/nvlink-mesh", BlindTablesLarge),
            off("8xA100-SXM-80", BlindTablesLarge))
      << "other links than its file's";
  EXPECT_EQ(off("8xB200", BlindTablesLarge), off("b200-nvswitch-8", BlindTablesLarge));
  EXPECT_EQ(off("8xB300", BlindCollectives), off("4xGB300", BlindCollectives));
}

/// Old names and their twins of parts: links, and NCCL on a node, are the same numbers. Between
/// nodes a file may have none, where parts have a network.
TEST(Composition, HasTheLinksAndTheNcclOfTheFileOfItsGpu) {
  for (const auto& [twin, file] :
       {std::pair{"8xB200", "b200-nvswitch-8"}, std::pair{"8xH100", "h100-nvswitch-8"},
        std::pair{"8xA100", "a100-80gb-nvswitch-8"}}) {
    const Machine made = load_machine(twin), measured = load_machine(file);
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const auto param = static_cast<Param>(i);
      const std::string_view key = info(param).key;
      const bool is_of_a_node = !is_of_network(param) && !key.starts_with("blind.tables.network") &&
                                param != Param::BlindTablesAlone;
      const bool is_of_links =
          key.starts_with("nccl.") || key.starts_with("nvlink.") || key.starts_with("blind.tables");
      if (!is_of_links || !is_of_a_node) continue;
      ASSERT_EQ(made.has(param), measured.has(param)) << twin << ": " << key;
      if (made.has(param)) EXPECT_EQ(made.get(param).value, measured.get(param).value) << key;
    }
  }
}

TEST(Composition, EveryNamedMachineIsMadeOfPartsThatAreThere) {
  EXPECT_GT(named_compositions().size(), 20u);
  for (const NamedComposition& one : named_compositions()) {
    const Machine machine = load_machine(one.name);
    EXPECT_EQ(machine.parts.size(), 4u) << one.name;
    EXPECT_THAT(machine.summary, HasSubstr(one.summary));
  }
  EXPECT_EQ(load_machine("p5.48xlarge:32").nodes, 32u);
}

TEST(Composition, HasNothingMissing) {
  const Machine measured = load_machine("h200-nvswitch-8");
  for (const std::string& gpu : part_names(PartFolder::Gpus)) {
    const Machine machine = load_machine("1x" + gpu);
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const auto param = static_cast<Param>(i);
      const std::string_view key = info(param).key;
      if (key.starts_with("nccl.") || key.starts_with("products.")) continue;
      if (key.starts_with("library.attention_forward")) continue;  // by facts: attends.*
      if (param == Param::BlindCollectives) continue;              // over PCIe nothing was judged
      if (key.ends_with("_flops")) continue;                       // hardware without such units
      if (measured.has(param)) EXPECT_TRUE(machine.has(param)) << gpu << ": " << key;
    }
    EXPECT_NO_THROW(nccl::topology_of(machine, 1, 1)) << gpu;
  }
}

TEST(Composition, IsAsFarOffAsGpusThatWereLeftOutWhereNobodyMeasuredItsPrograms) {
  const double products = load_machine("8xL40S").get(Param::BlindProducts).value;
  for (const char* const gpu : {"8xB200", "8xA100", "2xRTX-4090", "8xMI300X", "4xGH200"}) {
    EXPECT_EQ(load_machine(gpu).get(Param::BlindProducts).value, products) << gpu;
  }
  EXPECT_LT(load_machine("8xH100").get(Param::BlindProducts).value, products) << "it was measured";
}

TEST(Composition, IsReadBackAsItIsWritten) {
  const Machine made = load_machine("4xL40S/pcie4+tcp-100g:2");
  const auto read = read_machine(machine_text(made), "m.yaml");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->nodes, 2u);
  EXPECT_EQ(read->node.capability, 89u);
  EXPECT_TRUE(read->get(Param::LibrarySoftmaxRate).origin->is_carried);
  EXPECT_NEAR(read->rate(Param::LibrarySoftmaxRate), made.rate(Param::LibrarySoftmaxRate), 1e7);
}

TEST(Parts, SayWhatIsWrongWithAFact) {
  const auto errors = [](const std::string& facts) {
    const std::string text =
        "schema_version: 1\nsources: {s: {class: datasheet, text: t}}\n" + facts;
    const auto part = read_part(text, "g.yaml", PartFolder::Gpus);
    return part ? std::string{} : render(part.error(), text);
  };
  EXPECT_EQ(errors("facts: {power: {value: 700 W, source: s}, fp8: {value: none, source: s}}"), "");
  EXPECT_THAT(errors("facts: {powr: {value: 700 W, source: s}}"),
              HasSubstr("did you mean 'power'?"));
  EXPECT_THAT(errors("facts: {power: {value: 700, source: s}}"),
              AllOf(HasSubstr("'700' is no power"), HasSubstr("hint: 700 W")));
  EXPECT_THAT(errors("facts: {nvlinks: {value: -1, source: s}}"), HasSubstr("less than any"));
  EXPECT_THAT(errors("facts: {nvlinks: {value: 1e9, source: s}}"), HasSubstr("more than any"));
  EXPECT_THAT(errors("facts: {clock: {value: fast, source: s}}"), HasSubstr("is no clock"));
  EXPECT_THAT(errors("facts: {power: {value: 700 W, source: r}}"), HasSubstr("no source 'r'"));
  for (const char* const count : {"9e19", "1000001"}) {
    EXPECT_THAT(errors("facts: {sm_count: {value: " + std::string{count} + ", source: s}}"),
                HasSubstr("is more than any machine has\n"))
        << count;
  }
  EXPECT_THAT(errors("facts: {memory_bandwidth: {value: none, source: s}}"),
              AllOf(HasSubstr("no GPU is without 'memory_bandwidth'"), HasSubstr("donor")));
}

TEST(Parts, EveryShippedOneIsSoundAndSaysItsSources) {
  using enum PartFolder;
  for (const PartFolder folder : {Gpus, Links, Hosts, Networks}) {
    EXPECT_GT(part_names(folder).size(), 8u);
    for (const std::string& name : part_names(folder)) {
      const Part part = load_part(folder, name);
      EXPECT_NE(part.summary, "") << name;
      for (const auto& [key, fact] : part.facts) EXPECT_NE(fact.source, nullptr) << name << key;
    }
  }
}

}  // namespace
}  // namespace foretrace
