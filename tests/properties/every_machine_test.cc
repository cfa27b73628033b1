// Every command's work on every machine: an answer, or a refusal of what the hardware cannot do.
#include "tests/properties/every_machine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "models/machine/parts/limit_names.h"
#include "models/machine/parts/part.h"
#include "models/what_if/what_if.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/read/scenario.h"
#include "sim/applications/explain/explain.h"
#include "sim/applications/nccl_tests/predict.h"
#include "sim/applications/plan/search.h"
#include "sim/applications/plan/write.h"
#include "sim/machine_check.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

constexpr const char* kNoBFloat16 = "has no bfloat16 arithmetic, which begins at 8.0";
constexpr const char* kOneGpu = "do not fit: a node of machine";

/// Each of them but what the hardware refuses, in `why`'s words.
void expect_answers(const Asked& one, const std::vector<std::string>& why = {}) {
  const std::vector<std::string> answers = answers_of(one);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].starts_with("refused: ")) continue;
    ++refused;
    const bool is_right = std::ranges::any_of(
        why, [&](const std::string& words) { return answers[i].find(words) != std::string::npos; });
    EXPECT_TRUE(is_right) << every_machine()[i].name << ": " << answers[i];
  }
  EXPECT_LT(refused, answers.size() / 4);
  if (!why.empty()) EXPECT_GT(refused, 0u) << "the refusals are out of date";
}

TEST(EveryMachine, SimulatesProductsOfEachTypeThatItHas) {
  expect_answers(
      [](const Machine& machine) { return times_on(chains_of_gemms(machine), machine); });
}

TEST(EveryMachine, PredictsNcclTests) {
  for (const NcclTestsOp op : {NcclTestsOp::AllReduce, NcclTestsOp::AllToAll}) {
    expect_answers(
        [op](const Machine& machine) {
          NcclTestsPlan plan;
          plan.op = op;
          plan.processes = machine.gpu_name.starts_with("AMD") ? machine.gpus_per_node : 2;
          plan.iterations = 2;
          const std::uint64_t parts = info(op).is_total ? plan.processes : 1;
          plan.sizes = {{4096, 1024 / parts}, {1u << 24, (1u << 22) / parts}};
          check_plan(plan, machine);
          const auto rows = predict_nccl_tests(plan, machine);
          const bool is_sound = rows.at(0).time_us > 0 && rows.at(0).time_us < rows.at(1).time_us;
          return std::string{is_sound ? "answered" : "refused: 16 MiB take less than 4 KiB"};
        },
        {kOneGpu});
  }
}

/// Two whole nodes reduce at no less than a tenth of what their NICs bring.
TEST(EveryMachine, ReducesBetweenItsNodesWithItsNetwork) {
  const std::vector<std::string> answers = answers_of([](const Machine& machine) {
    const std::uint32_t gpus = machine.gpus_per_node;
    if (machine.parts.empty() || gpus > 8) return std::string{"not asked"};
    NcclTestsPlan plan;
    plan.nodes = 2;
    plan.processes = 2 * gpus;
    plan.iterations = 1;
    plan.sizes = {{1u << 26, 1u << 24}};
    const double seconds = 1e-6 * predict_nccl_tests(plan, machine).front().time_us;
    const double bus = 2 * (plan.processes - 1.0) / plan.processes * (1u << 26) / seconds;
    const double nics = machine.node.nics.value_or(1) * machine.node.nic_bandwidth.value_or(0);
    return fmt::format("share {}", bus / std::min(nics, machine.rate(Param::NvlinkBandwidth)));
  });
  std::size_t asked = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] == "not asked") continue;
    ++asked;
    EXPECT_GT(time_in(answers[i], "share"), 0.1) << every_machine()[i].name << ": " << answers[i];
  }
  EXPECT_GT(asked, 30u);
}

TEST(EveryMachine, SimulatesATrainingStepInEachPrecision) {
  const auto in = [](const char* precision) {
    return [precision](const Machine& machine) {
      return times_on(small_training_step(few_ranks(machine), precision), machine);
    };
  };
  expect_answers(in("parameters: bfloat16"), {kNoBFloat16});
  expect_answers(in("parameters: float32"), {kNoBFloat16});
  // Two files are a textbook's machines, of copies and kernels alone: 2xV100 has PyTorch's times.
  expect_answers(in("compute: float16, parameters: float32"),
                 {"has no parameter 'pytorch.eager.step'"});
}

/// In eight bits where the GPU has them, and not in the time of sixteen.
TEST(EveryMachine, TrainsInFloat8WhereTheGpuHasIt) {
  const auto step = [](const char* machine, const char* precision) {
    return time_in(times_on(fmt::format(R"(schema_version: 1
name: wide
training_step:
  model: {{layers: 2, hidden: 8192, heads: 64, kv_heads: 8, ffn: 28672, vocab: 1024}}
  batch: {{sequence: 8192}}
  precision: {{compute: {}}}
  steps: 1
)",
                                        precision),
                            load_machine(machine)),
                   "step");
  };
  for (const char* const machine : {"8xH100", "8xB200"}) {
    const double wide = step(machine, "bfloat16"), narrow = step(machine, "float8");
    EXPECT_LT(narrow, 0.9 * wide) << machine;
    EXPECT_GT(narrow, 0.5 * wide) << machine << ": casts and attention stay";
  }
  try {
    step("8xA100", "float8");
    FAIL() << "an A100 has no float8";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has no float8 arithmetic, which begins at 8.9"));
  }
}

TEST(EveryMachine, AnswersWhatIfsAndHalfOfAnythingIsNeverFaster) {
  const auto of = [](const Machine& machine) {
    return times_on(bounded_regions(few_ranks(machine)), machine);
  };
  expect_answers(of);
  const std::vector<std::string> now = answers_of(of);
  for (const char* const what_if : {"nvlink=0.5x", "hbm=0.5x", "pcie=0.5x", "gemm=0.5x"}) {
    const std::vector<std::string> then = answers_of([&](const Machine& machine) {
      Machine slower = machine;
      apply_what_ifs(slower, {what_if});
      return of(slower);
    });
    for (std::size_t i = 0; i < now.size(); ++i) {
      const Machine& machine = every_machine()[i];
      EXPECT_FALSE(then[i].starts_with("refused")) << machine.name << ": " << then[i];
      for (const char* const region : {"gemm", "memory", "all_reduce"}) {
        // cuBLAS' choice is not always its fastest: another one may be a little better.
        EXPECT_GE(time_in(then[i], region), 0.98 * time_in(now[i], region))
            << machine.name << " with " << what_if << ": " << region;
      }
      const std::string_view asked = what_if;
      const char* const slower = asked.starts_with("nvlink") ? "all_reduce"
                                 : asked.starts_with("hbm")  ? "memory"
                                 : asked.starts_with("gemm") ? "gemm"
                                                             : "";
      if (slower == std::string_view{} || time_in(now[i], slower) == 0) continue;
      EXPECT_GT(time_in(then[i], slower), 1.3 * time_in(now[i], slower))
          << machine.name << " with " << what_if;
    }
  }
}

TEST(EveryMachine, ExplainsARun) {
  for (const Machine& machine : every_machine()) {
    const auto read = read_scenario(bounded_regions(few_ranks(machine)), "a.yaml");
    ASSERT_TRUE(read);
    const explain::Explanation explanation = explain::explain(read->program, machine);
    EXPECT_TRUE(explanation.ends) << machine.name;
    EXPECT_GT(explanation.seconds, 0) << machine.name;
    EXPECT_THAT(headline_of(explanation), HasSubstr("region")) << machine.name;
  }
}

/// Of a shape that all machines have: a search takes a second.
TEST(EveryMachine, PlansATrainingStepAndNamesItsLimit) {
  for (const Machine& machine : every_machine()) {
#ifndef FORETRACE_ALL_TESTS
    if (!machine.name.starts_with("8x") && machine.name != "2xL40S" && machine.name != "2xT4" &&
        machine.name != "2xH100-NVL" && machine.name != "v100-pcie-4") {
      continue;
    }
#endif
    plan::Question question;
    question.model = "{style: gpt, layers: 2, hidden: 1024, heads: 16, ffn: 4096, vocab: 1000}";
    question.model_name = "small";
    question.machine_name = machine.name;
    question.machine = machine;
    question.sequence = 512;
    question.global_batch = 4;
    question.kept = {
        {"micro", "1"}, {"recompute", "none"}, {"pipeline", "1"}, {"sharding", "zero1"}};
    question.top = 1;
    if (why_no_bfloat16(machine)) continue;  // the command's own refusal
    const std::int64_t gpus = few_ranks(machine);
    if (gpus == 1) question.kept["sharding"] = "none";
    const plan::Layout one;
    question.architecture =
        read_training(plan::scenario_text(question, one, 1), "a.yaml")->step.model;
    const plan::Answer answer =
        plan::search(question, gpus, [](const plan::Standing&) { return true; });
    EXPECT_THAT(answer.refused, testing::IsEmpty()) << machine.name;
    ASSERT_EQ(answer.best.size(), 1u) << machine.name;
    EXPECT_GT(answer.best.front().prediction.seconds, 0) << machine.name;
    EXPECT_THAT(text_of(question, {answer}), HasSubstr("limited by")) << machine.name;
  }
}

/// Eight and four bits where the GPU's facts have them, with the hardware's own reason elsewhere.
TEST(EveryMachine, MultipliesNarrowTypesWhereTheGpuHasThem) {
  const auto answer = [](const char* machine, const std::string& type) {
    const std::string text = fmt::format(R"(schema_version: 1
name: narrow
streams: {{s: {{flags: non_blocking}}}}
buffers: {{x: {{memory: device, size: 32MiB}}, y: {{memory: device, size: 64MiB}}, w: {{memory: device, size: 32MiB}}}}
threads:
  main:
    - region:
        name: product
        ops:
          - gemm: {{stream: s, m: 4096, n: 4096, k: 4096, {}, a: w, b: x, c: y, transpose_a: true}}
          - stream_synchronize: {{stream: s}}
)",
                                         type);
    try {
      return times_on(text, load_machine(machine));
    } catch (const UsageError& error) {
      return std::string{error.what()};
    }
  };
  const auto seconds = [&](const char* machine, const std::string& type) {
    const std::string text = answer(machine, type);
    EXPECT_GT(time_in(text, "product"), 0) << machine << ": " << text;
    return time_in(text, "product");
  };
  for (const char* const gpu : {"8xH100", "8xB200", "8xMI300X", "2xL40S", "8xH20"}) {
    EXPECT_LT(seconds(gpu, "type: float8_e4m3"), 0.8 * seconds(gpu, "type: bfloat16")) << gpu;
  }
  for (const char* const gpu : {"8xB200", "8xMI355X", "2xRTX-5090"}) {
    EXPECT_LT(seconds(gpu, "type: float4_e2m1, scales: mx"), seconds(gpu, "type: float8_e4m3"));
    EXPECT_GT(seconds(gpu, "type: float8_e4m3, scales: mx"), 0);
  }
  EXPECT_GT(seconds("8xB300", "type: int8"), 2 * seconds("8xB200", "type: int8"));
  for (const char* const lacking : {"8xA100", "8xMI250X", "2xV100"}) {
    EXPECT_THAT(answer(lacking, "type: float8_e4m3"), HasSubstr("has no float8 arithmetic"));
  }
  EXPECT_THAT(answer("8xH100", "type: float4_e2m1, scales: nv"), HasSubstr("has no float4"));
  EXPECT_THAT(answer("8xMI300X", "type: float8_e4m3, scales: mx"), HasSubstr("has no MX float8"));
  EXPECT_LT(seconds("h200-nvswitch-8", "type: float8_e4m3"),
            0.8 * seconds("h200-nvswitch-8", "type: bfloat16"))
      << "a file whose own products were measured in 16 bits";
}

/// A box on PCIe is not limited by NVLink, nor by a link of no name.
TEST(EveryMachine, NamesItsLinksAsTheyAreSold) {
  const auto named = [](const char* machine) { return link_name(load_machine(machine)); };
  EXPECT_EQ(named("4xL40S/pcie4+tcp-100g"), "PCIe 4.0 x16");
  EXPECT_EQ(named("2xL40S/pcie3-switch"), "PCIe 3.0 x16");
  EXPECT_EQ(named("2xT4/pcie5"), "PCIe 3.0 x16") << "the GPU's own slot";
  EXPECT_EQ(named("rtx4090-pcie-2"), "PCIe 4.0 x16");
  EXPECT_EQ(named("72xGB200/nvl72"), "NVLink 5 (NVL72)");
  EXPECT_EQ(named("8xMI300X"), "xGMI");
  EXPECT_EQ(named("mi300x-8"), "xGMI");
  EXPECT_EQ(named("2xH100-NVL"), "NVLink bridges");
  EXPECT_EQ(named("h200-nvswitch-8"), "NVLink");
  EXPECT_EQ(network_name(load_machine("8xB200+ib-ndr:2")), "InfiniBand NDR");
  EXPECT_EQ(network_name(load_machine("p5.48xlarge")), "EFA v2");
  EXPECT_EQ(network_name(load_machine("h200-nvswitch-8")), "the network");
  for (const PartFolder folder : {PartFolder::Links, PartFolder::Networks}) {
    for (const std::string& name : part_names(folder)) {
      const Part part = load_part(folder, name);
      EXPECT_NE(part.word("called").empty(), part.word("link").find("pcie") == std::string::npos)
          << name;
    }
  }
}

}  // namespace
}  // namespace foretrace::test
