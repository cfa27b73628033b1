// Published training steps: what a line of the table says, and the yardstick beside it.
#include "sim/applications/training/published_steps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "scenarios/base/text/errors.h"

namespace foretrace::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kColumns =
    "id,framework,params_b,layers,hidden,heads,ffn_hidden,seq_len,vocab,gpu,gpus,gpus_per_node,"
    "network,precision,cp,micro_batch,global_batch,recompute,metric,value,notes,quality,model,kv_"
    "heads,"
    "tp,pp,vpp,dp,zero_or_fsdp,sequence_parallel,overlap_options\n";

/// 1.3 billion parameters on eight GPUs; the rest of the line.
std::string line(const std::string& id, const std::string& framework, const std::string& rest) {
  return id + "," + framework + ",1.3,24,2048,16,8192,2048,50368," + rest + ",MPT,,1,1,1,8,,no,\n";
}

/// Of Megatron-Core, on 64 GPUs; what the layout is.
std::string megatron(const std::string& model, const std::string& layout) {
  return "dgxc-1,NeMo / Megatron-Core,8,32,4096,32,14336,8192,128256,H100-80GB-SXM,64,8,8x 400 "
         "Gb/s "
         "IB per node,bf16,2,1,128,none,step_s,1.5,,A," +
         model + "," + layout + ",distributed optimizer,yes,tp_comm_overlap\n";
}

std::vector<PublishedStep> steps_of(const std::string& lines) {
  const fs::path file =
      fs::temp_directory_path() / ("foretrace_published_" + std::to_string(getpid()));
  std::ofstream{file} << kColumns << lines;
  auto steps = read_published_steps(file);
  fs::remove(file);
  return steps;
}

constexpr const char* kGood =
    "A100-80GB-SXM,8,8,not stated,bf16,1,14,448,none,tokens_per_s_per_gpu,20513,mode PURE,A";

TEST(PublishedSteps, TakeTokensForTheStepsTime) {
  const auto steps = steps_of(line("mpt-111", "llm-foundry", kGood));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].refused, "");
  EXPECT_EQ(steps[0].machine, "a100-80gb-nvswitch-8-triton");
  EXPECT_NEAR(steps[0].seconds, 448.0 * 2048 / 8 / 20513, 1e-9);
  EXPECT_EQ(steps[0].step.passes, 4);
  EXPECT_FALSE(steps[0].step.float32_reduce) << "PURE";
}

TEST(PublishedSteps, SayWhyTheyAreNotPredicted) {
  const auto steps = steps_of(
      line("mpt-1", "llm-foundry",
           "V100-32GB,8,8,not stated,bf16,1,14,448,none,tokens_per_s_per_gpu,20513,,A") +
      line("nemo-1", "NeMo / Megatron-Core",
           "H100-80GB-SXM,8,8,not stated,bf16,1,14,448,none,step_s,1.5,,A") +
      line("mpt-2", "llm-foundry", "A100-80GB-SXM,64,8,Ethernet,bf16,1,1,64,none,step_s,1.5,,A") +
      line("mpt-3", "llm-foundry",
           "A100-80GB-SXM,8,8,not stated,bf16,1,14,449,none,step_s,1.5,,A"));
  EXPECT_EQ(steps[0].refused, "no part is of its GPU or network");
  EXPECT_EQ(steps[1].refused, "model: MPT");
  EXPECT_EQ(steps[2].refused, "no part is of its GPU or network");
  EXPECT_EQ(steps[3].refused, "batch is no multiple");
}

TEST(PublishedSteps, OfRacksShareNvlinkAndOthersTheMakersNetworkWhereNoneIsSaid) {
  const auto steps = steps_of(
      line("a-1", "llm-foundry",
           "GB200-186GB,128,4,NVL72 + InfiniBand,fp8,1,1,128,none,step_s,1,,A") +
      line("a-2", "llm-foundry", "A100-80GB-SXM,64,8,not stated,bf16,1,1,64,none,step_s,1,,A"));
  EXPECT_EQ(steps[0].machine, "64xGB200+ib-ndr:2");
  EXPECT_EQ(steps[0].step.nodes, 2);
  EXPECT_EQ(steps[0].step.narrow, training::Narrow::Float8);
  EXPECT_EQ(steps[1].machine, "8xA100-SXM-80+ib-hdr:8");
}

TEST(PublishedSteps, OfA100NodesArePredictedWhereTheirNetworkIsKnown) {
  const auto steps =
      steps_of(line("mpt-2", "llm-foundry",
                    "A100-80GB-SXM,64,8,1600 Gb/s RoCE per node,bf16,1,1,64,none,step_s,1.5,,A"));
  EXPECT_EQ(steps[0].refused, "");
  EXPECT_EQ(steps[0].step.nodes, 8);
}

TEST(PublishedSteps, OfMegatronCoreHaveItsLayout) {
  const auto steps =
      steps_of(megatron("Llama3.1-8B", "8,2,4,2,4") + megatron("Llama3.1-8B", "8,2,4,2,3") +
               megatron("Llama3.1-8B", "8,2,4,3,4") + megatron("Llama2-70B LoRA", "8,2,4,2,4") +
               megatron("Grok1-314B", "8,2,4,2,4") + megatron("Nemotron4-15B", "8,2,4,2,4"));
  ASSERT_EQ(steps.size(), 6u);
  const training::TrainingStep& step = steps[0].step;
  EXPECT_EQ(steps[0].refused, "");
  EXPECT_EQ(steps[0].machine, "h100-nvswitch-8");
  EXPECT_EQ(step.tensor * 10000 + step.context * 1000 + step.pipeline * 100 + step.chunks * 10 +
                step.data,
            22424);
  EXPECT_EQ(step.model.kv_heads, 8);
  EXPECT_EQ(step.model.vocab, 128256);
  EXPECT_EQ(step.passes, 32);
  EXPECT_TRUE(step.is_megatron_core() && step.overlaps_tensor && step.model.gated);
  EXPECT_FALSE(step.float32_reduce) << "dgxc-benchmarking";
  EXPECT_EQ(steps[1].refused, "degrees do not multiply to the GPUs");
  EXPECT_EQ(steps[2].refused, "stages of unequal layers");
  EXPECT_EQ(steps[3].step.adapters.rank, 8) << "NeMo's performance mode";
  EXPECT_EQ(steps[4].refused, "model: Grok1-314B");
  EXPECT_FALSE(steps[5].step.model.gated || steps[5].step.model.biases);
}

/// Llama 3 8B by another framework: where, and how it is split.
std::string other(const std::string& framework, const std::string& where,
                  const std::string& layout) {
  return "a-1," + framework + ",8.03,32,4096,32,14336,4096,128256," + where +
         ",1,4,64,full per block,step_s,1.5,,A,Llama-3 8B,8," + layout + "\n";
}

TEST(PublishedSteps, OnMachinesThatCannotBeAreRefusedAndTheTableGoesOn) {
  const auto steps = steps_of(other("torchtitan", "H200-NVL-141GB,8,8,,bf16", "1,1,1,8,fsdp2,no,") +
                              line("mpt-111", "llm-foundry", kGood));
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_NE(steps[0].refused.find("nvlink-bridge4 joins at most 4 GPUs, not 8"), std::string::npos)
      << steps[0].refused;
  EXPECT_EQ(steps[0].refused.find('\n'), std::string::npos) << "a cell of a table";
  EXPECT_EQ(steps[1].refused, "");
  EXPECT_TRUE(predict_published({steps[0]})[0] == std::nullopt);
}

TEST(PublishedSteps, WhoseGroupsAreSpreadUnevenlyAreLeftOutAndTheTableGoesOn) {
  // A stage has 24 GPUs of 16 a node: three replicas over two nodes.
  const auto steps = steps_of(
      "dgxc-1,NeMo / Megatron-Core,8,32,4096,32,14336,8192,128256,H100-80GB-SXM,48,16,8x "
      "400 Gb/s IB per node,bf16,1,1,48,none,step_s,1.5,,A,Llama3.1-8B,8,8,2,1,3,"
      "distributed optimizer,yes,tp_comm_overlap\n");
  ASSERT_EQ(steps[0].refused, "");
  EXPECT_TRUE(predict_published(steps)[0] == std::nullopt);
}

TEST(PublishedSteps, OfOtherFrameworksAreReadAsTheNearestAndSaySo) {
  const std::string h200 = "H200-141GB-SXM,16,4,InfiniBand NDR 400,bf16";
  const std::string fsdp = "4,1,1,4,fsdp2 full shard,yes,torch.compile";
  const auto steps =
      steps_of(other("KempnerForge (PyTorch FSDP2)", h200, fsdp) + other("nobody's", h200, fsdp) +
               other("Megatron-LM", h200, "4,1,1,4,zero1,yes,") +
               other("torchtitan", "H100-80GB-SXM,8,8,,fp8", "1,1,1,8,fsdp2,no,") +
               other("torchtitan", h200, "4,2,1,2,fsdp2,yes,"));
  ASSERT_EQ(steps.size(), 5u);
  const training::TrainingStep& step = steps[0].step;
  EXPECT_EQ(steps[0].refused, "");
  EXPECT_EQ(steps[0].read_as, "PyTorch's eager calls");
  EXPECT_EQ(steps[0].machine, "4xH200-SXM+ib-ndr:4");
  EXPECT_EQ(step.data * 100 + step.tensor * 10 + step.passes, 444);
  EXPECT_TRUE(step.sharding == training::Sharding::Fsdp && step.model.gated && step.compiled);
  EXPECT_TRUE(step.half_loss && !step.loss_parallel && !step.fused_loss) << "training/loss.py";
  EXPECT_FALSE(step.float32_parameters) << "parallel.py: to(dtype=param_dtype)";
  EXPECT_TRUE(steps[1].step.fused_loss && steps[1].step.float32_parameters);
  EXPECT_EQ(steps[1].read_as, steps[0].read_as) << "an unknown name";
  EXPECT_TRUE(steps[0].environment.empty());
  EXPECT_EQ(steps[2].refused, "");
  EXPECT_EQ(steps[2].read_as, "Megatron-LM's calls");
  EXPECT_TRUE(steps[3].step.narrow == training::Narrow::Float8 && steps[3].refused.empty());
  EXPECT_EQ(steps[3].machine, "8xH100-SXM");
  EXPECT_EQ(steps[4].refused, "FSDP beside a pipeline");
}

TEST(PublishedSteps, OfTorchtitanRecomputeByOperators) {
  std::string row =
      other("torchtitan", "H100-96GB-HBM2e-500W,16,8,400 Gb/s RDMA per GPU (Grand Teton),bf16",
            "1,1,1,16,fsdp2,no,");
  const std::string full = "full per block";
  row.replace(row.find(full), full.size(), "selective op (per-op SAC)");
  const auto steps = steps_of(row);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].refused, "");
  EXPECT_EQ(steps[0].step.recompute, training::Recompute::Products);
  EXPECT_EQ(steps[0].machine, "8xH100-SXM-96+roce-400g:2");
  EXPECT_EQ(steps[0].attention, "h100-nvswitch-8-flash2") << "PyTorch of before 2.10";
}

/// The same with another recomputation.
std::string recomputing(const std::string& framework, const std::string& what) {
  std::string row = other(framework, "H100-80GB-SXM,8,8,,bf16", "1,1,1,8,fsdp 8,no,no compile");
  const std::string full = "full per block";
  return row.replace(row.find(full), full.size(), what);
}

TEST(PublishedSteps, OfJaxKeepWhatTheirPolicyNames) {
  const auto keeps = [](const std::string& policy) {
    const auto steps = steps_of(recomputing("MaxText (JAX)", policy));
    EXPECT_EQ(steps[0].refused, "") << policy;
    EXPECT_EQ(steps[0].step.recompute, training::Recompute::Full) << policy;
    const training::Kept& kept = steps[0].step.keeps;
    std::string text;
    for (const auto& [letter, is] :
         {std::pair{'q', kept.queries}, std::pair{'a', kept.attention}, std::pair{'o', kept.output},
          std::pair{'u', kept.up}, std::pair{'d', kept.down}}) {
      if (is) text += letter;
    }
    return text;
  };
  EXPECT_EQ(keeps("\"partial: save qkv,out,mlpwo\""), "qod") << "MaxText's custom policy";
  EXPECT_EQ(keeps("minimal_flash (save all but attention)"), "qaoud") << "what it is called";
  EXPECT_EQ(keeps("minimal"), "qoud");
  EXPECT_EQ(keeps("save_dot_except_mlpwi"), "qod");
  EXPECT_EQ(keeps("save_dot_except_mlp"), "qo");
  EXPECT_EQ(keeps("save_qkv_proj"), "q");
  EXPECT_EQ(keeps("full"), "");
  EXPECT_EQ(steps_of(recomputing("MaxText (JAX)", "qkv_proj_offloaded"))[0].refused,
            "activations that go to the host's memory");
}

TEST(PublishedSteps, OfMegatronFsdpScatterTheGradientsOfEveryMicroBatch) {
  std::string row = megatron("Llama3-8B", "8,1,1,,32");
  const std::string optimizer = "distributed optimizer", overlap = "tp_comm_overlap";
  row.replace(row.find(optimizer), optimizer.size(), "megatron-fsdp");
  std::string offloads = row;
  offloads.replace(offloads.find(overlap), overlap.size(), "activation cpu offload 40 layers");
  const auto steps = steps_of(row + offloads);
  EXPECT_EQ(steps[0].refused, "");
  EXPECT_EQ(steps[0].step.sharding, training::Sharding::Fsdp);
  EXPECT_TRUE(steps[0].step.reduce_every_pass);
  EXPECT_EQ(steps[1].refused, "activations that go to the host's memory");
}

TEST(PublishedSteps, ShareParametersAsTheTableSays) {
  const auto shard = [](const char* words) {
    const std::string row = other("MaxText (JAX)", "H100-80GB-SXM,64,8,8x 400 Gb/s IB,bf16",
                                  fmt::format("1,1,1,64,{},no,", words));
    const training::TrainingStep step = steps_of(row)[0].step;
    EXPECT_EQ(step.sharding, training::Sharding::Fsdp) << words;
    return step.shard;
  };
  EXPECT_EQ(shard("fsdp 16 x dp 4"), 16);
  EXPECT_EQ(shard("fsdp 8 in node x dp 8"), 8);
  EXPECT_EQ(shard("fsdp 64 x dp 1"), 0) << "all of them";
  EXPECT_EQ(shard("hsdp"), 8) << "a node";
  EXPECT_EQ(shard("fsdp2 full shard"), 0);
}

TEST(PublishedSteps, RecomputeEverySecondLayerWhereTheTableSaysSo) {
  const auto steps = steps_of(recomputing("torchtitan", "selective layer (every 2nd)"));
  EXPECT_EQ(steps[0].step.recompute, training::Recompute::Full);
  EXPECT_EQ(steps[0].step.recompute_every, 2);
  EXPECT_FALSE(steps[0].step.compiled) << "no compile";
}

TEST(PublishedSteps, AreOfTheTimeAndTheMemoryThatNotesSay) {
  std::string row = other("torchtitan", "H100-80GB-SXM,8,8,,bf16", "1,1,1,8,fsdp 8,no,");
  const std::string metric = "step_s,1.5,,A";
  row.replace(row.find(metric), metric.size(),
              "tflops_per_gpu,400,arithmetic of its own; equals step_s 2.5; peak memory 50.5 GB,A");
  const auto steps = steps_of(row + other("t", "H100-80GB-SXM,8,8,,bf16", "1,1,1,8,fsdp 8,no,"));
  EXPECT_DOUBLE_EQ(steps[0].seconds, 2.5);
  EXPECT_DOUBLE_EQ(steps[0].peak, 50.5 * 0x1p30);
  EXPECT_EQ(steps[1].peak, 0);
}

TEST(PublishedSteps, SayThatTheMakersNetworkIsAssumed) {
  std::string unsaid = megatron("Llama3-8B", "8,2,1,,16");
  const std::string network = "8x 400 Gb/s IB per node";
  unsaid.replace(unsaid.find(network), network.size(), "not stated");
  const auto steps = steps_of(megatron("Llama3-8B", "8,2,1,,16") + unsaid);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].assumed, "");
  EXPECT_EQ(steps[1].assumed, "the network that its maker sells with it") << steps[1].machine;
}

TEST(PublishedSteps, MayBeginWithLinesThatSayWhatTheTableIs) {
  const fs::path file =
      fs::temp_directory_path() / ("foretrace_commented_" + std::to_string(getpid()));
  std::ofstream{file} << "# measured by others, as they said it\n"
                      << kColumns << line("mpt-111", "llm-foundry", kGood);
  EXPECT_EQ(read_published_steps(file).size(), 1u);
  fs::remove(file);
}

TEST(PublishedSteps, AreMeasuredAgainstOtherSourcesOfTheSameKindOnly) {
  const auto at = [](double seconds) {
    return "A100-80GB-SXM,8,8,not stated,bf16,1,14,448,none,step_s," + std::to_string(seconds) +
           ",,A";
  };
  const auto steps = steps_of(line("mpt-1", "llm-foundry", at(5)) +
                              line("mpt-2", "llm-foundry", at(1)) + line("vts-1", "other", at(7)));
  ASSERT_TRUE(yardstick(steps[0], steps));
  EXPECT_NEAR(*yardstick(steps[0], steps), 7, 1e-6);
  EXPECT_NEAR(*yardstick(steps[2], steps), 5.0 / 3, 0.2) << "the median rate of the two";
  EXPECT_FALSE(yardstick(steps[0], {steps[0], steps[1]}));
}

TEST(PublishedSteps, NameTheLineThatIsWrong) {
  EXPECT_THROW(steps_of(line("mpt-1", "llm-foundry", "A100,8")), UsageError);
  for (const char* row : {"A100-80GB-SXM,8,8,,bf16,1,1.5,448,none,step_s,1,,A",
                          "A100-80GB-SXM,8,8,,bf16,1,900000000,900000000,none,step_s,1,,A",
                          "A100-80GB-SXM,-8,8,,bf16,1,1,448,none,step_s,1,,A"}) {
    EXPECT_THROW(steps_of(line("mpt-1", "llm-foundry", row)), UsageError) << row;
  }
}

TEST(PublishedSteps, OnNodesOfUnknownSizeAreOnNodesOfOne) {
  const auto steps =
      steps_of(line("mpt-1", "llm-foundry", "A100-80GB-SXM,8,0,,bf16,1,1,448,none,step_s,1,,A"));
  EXPECT_EQ(steps[0].step.nodes, 8);
}

}  // namespace
}  // namespace foretrace::sim
