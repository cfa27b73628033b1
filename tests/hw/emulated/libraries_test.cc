// cuBLAS, cuDNN and NCCL without a GPU: what a call's record says.
#include <gmock/gmock.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "library.h"

namespace {

using emulated_test::call;
using emulated_test::record_count;
using emulated_test::records_since;
using nlohmann::json;

using P = void*;

TEST(EmulatedBlas, AProductOfLtIsOneRecordWithItsSizesTypesAndEpilogue) {
  constexpr int kBf16 = 14, kF32 = 0, kCompute32 = 68, kGeluAuxBias = 164, kTransposeA = 3,
                kEpilogue = 7;
  P handle, description, a, b, c;
  call<int>("cublasLtCreate", &handle);
  call<int>("cublasLtMatmulDescCreate", &description, kCompute32, kF32);
  const int yes = 1, epilogue = kGeluAuxBias;
  call<int>("cublasLtMatmulDescSetAttribute", description, kTransposeA,
            static_cast<const void*>(&yes), sizeof yes);
  call<int>("cublasLtMatmulDescSetAttribute", description, kEpilogue,
            static_cast<const void*>(&epilogue), sizeof epilogue);
  call<int>("cublasLtMatrixLayoutCreate", &a, kBf16, uint64_t{64}, uint64_t{512}, int64_t{64});
  call<int>("cublasLtMatrixLayoutCreate", &b, kBf16, uint64_t{64}, uint64_t{128}, int64_t{64});
  call<int>("cublasLtMatrixLayoutCreate", &c, kBf16, uint64_t{512}, uint64_t{128}, int64_t{512});
  const float alpha = 1, beta = 0;
  const size_t first = record_count();
  call<int>("cublasLtMatmul", handle, description, static_cast<const void*>(&alpha),
            static_cast<const void*>(nullptr), a, static_cast<const void*>(nullptr), b,
            static_cast<const void*>(&beta), static_cast<const void*>(nullptr), c, P{}, c,
            static_cast<const void*>(nullptr), P{}, size_t{1024}, P{});
  const auto said = json::parse(records_since(first).at(0));
  EXPECT_EQ(said["k"], "gemm");
  EXPECT_EQ((std::vector<int>{said["m"], said["n"], said["kk"], said["batch"]}),
            (std::vector{512, 128, 64, 1}));
  EXPECT_EQ(said["ta"], true);
  EXPECT_EQ(said["tb"], false);
  EXPECT_EQ(said["a"], "bf16");
  EXPECT_EQ(said["compute"], "f32");
  EXPECT_EQ(said["epi"], "gelu_aux_bias");
  EXPECT_EQ(said["beta"], 0);
  EXPECT_EQ(said["ws"], 1024);
}

TEST(EmulatedBlas, AProductOfFloatsIsTf32WhereThatIsAllowed) {
  P handle;
  call<int>("cublasCreate_v2", &handle);
  const auto compute = [&](int mode) {
    call<int>("cublasSetMathMode", handle, mode);
    const size_t first = record_count();
    const float one = 1;
    call<int>("cublasSgemm_v2", handle, 0, 1, 8, 16, 32, static_cast<const void*>(&one),
              static_cast<const void*>(nullptr), 8, static_cast<const void*>(nullptr), 16,
              static_cast<const void*>(&one), P{}, 8);
    const auto said = json::parse(records_since(first).at(0));
    EXPECT_EQ(said["beta"], 1);
    return said["compute"].get<std::string>();
  };
  EXPECT_EQ(compute(0), "f32");
  EXPECT_EQ(compute(3), "tf32");
}

// A graph of one convolution, built and executed as cuDNN's front end does.
class Convolution {
 public:
  Convolution() {
    x_ = tensor(2, {2, 3, 16, 16}, {768, 256, 16, 1});
    w_ = tensor(2, {8, 3, 3, 3}, {27, 9, 3, 1});
    y_ = tensor(2, {2, 8, 14, 14}, {1568, 196, 14, 1});
    geometry_ = make(1);
    set(geometry_, 103, {1, 1});
    set(geometry_, 105, {0, 0});
    operation_ = make(10);
    set(operation_, 702, geometry_);
    set(operation_, 703, w_);
    set(operation_, 704, x_);
    set(operation_, 705, y_);
    graph_ = make(15);
    set(graph_, 801, operation_);
  }
  P plan() {
    P heuristics = make(4), configuration = make(3), plan = make(5);
    set(heuristics, 201, graph_);
    int64_t found = 0;
    call<int>("cudnnBackendGetAttribute", heuristics, 202, 15, int64_t{1}, &found,
              static_cast<void*>(&configuration));
    EXPECT_EQ(found, 1);
    set(plan, 401, configuration);
    int64_t workspace = 1;
    call<int>("cudnnBackendGetAttribute", plan, 402, 3, int64_t{1}, &found,
              static_cast<void*>(&workspace));
    EXPECT_EQ(workspace, 0);
    for (const P part : {heuristics, graph_, operation_, geometry_, x_, w_, y_})
      call<int>("cudnnBackendDestroyDescriptor", part);
    return plan;
  }

 private:
  static P make(int type) {
    P d;
    call<int>("cudnnBackendCreateDescriptor", type, &d);
    return d;
  }
  static void set(P d, int name, P part) {
    call<int>("cudnnBackendSetAttribute", d, name, 15, int64_t{1}, static_cast<const void*>(&part));
  }
  static void set(P d, int name, std::vector<int64_t> v) {
    call<int>("cudnnBackendSetAttribute", d, name, 3, static_cast<int64_t>(v.size()),
              static_cast<const void*>(v.data()));
  }
  static P tensor(int type, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    const P t = make(17);
    call<int>("cudnnBackendSetAttribute", t, 901, 1, int64_t{1}, static_cast<const void*>(&type));
    set(t, 902, std::move(sizes));
    set(t, 903, std::move(strides));
    return t;
  }
  P x_, w_, y_, geometry_, operation_, graph_;
};

TEST(EmulatedDnn, AnExecutionSaysTheOperationsOfItsGraph) {
  P handle;
  call<int>("cudnnCreate", &handle);
  const P plan = Convolution().plan();
  const size_t first = record_count();
  for (int i = 0; i < 2; ++i) call<int>("cudnnBackendExecute", handle, plan, P{});
  const auto said = json::parse(records_since(first).at(1));
  ASSERT_EQ(said["ops"].size(), 1u);
  const auto& operation = said["ops"][0];
  EXPECT_EQ(operation["op"], "conv_fwd");
  EXPECT_EQ(operation["x"]["s"], json({2, 3, 16, 16}));
  EXPECT_EQ(operation["w"]["d"], "f16");
  EXPECT_EQ(operation["y"]["st"], json({1568, 196, 14, 1}));
  EXPECT_EQ(operation["stride"], json({1, 1}));
}

struct Id {
  char bytes[128];
};

TEST(EmulatedNccl, OneProcessIsOneRankOfAnyWorld) {
  Id id;
  call<int>("ncclGetUniqueId", &id);
  P comm = nullptr, gpu = nullptr, pair = nullptr;
  const size_t first = record_count();
  call<int>("ncclCommInitRank", &comm, 8, id, 3);
  int size = 0, rank = 0;
  call<int>("ncclCommCount", comm, &size);
  call<int>("ncclCommUserRank", comm, &rank);
  EXPECT_EQ(size, 8);
  EXPECT_EQ(rank, 3);
  call<int>("cudaMalloc", &gpu, size_t{4096});
  constexpr int kF32 = 7, kSum = 0;
  const float mine[] = {1.5f};
  call<int>("cudaMemcpy", gpu, static_cast<const void*>(mine), sizeof mine, 1);
  call<int>("ncclAllGather", static_cast<const void*>(gpu),
            static_cast<void*>(static_cast<char*>(gpu) + 64), size_t{1}, kF32, comm, P{});
  float all[8] = {};
  call<int>("cudaMemcpy", static_cast<void*>(all),
            static_cast<const void*>(static_cast<char*>(gpu) + 64), sizeof all, 2);
  EXPECT_THAT(all, testing::Each(1.5f));
  call<int>("ncclReduceScatter", static_cast<const void*>(gpu), gpu, size_t{2}, kF32, kSum, comm,
            P{});
  call<int>("ncclCommSplit", comm, 1, 3, &pair, P{});
  const auto texts = records_since(first);
  EXPECT_THAT(texts[0], testing::HasSubstr(R"("k":"comm")"));
  EXPECT_THAT(texts[0], testing::HasSubstr(R"("size":8,"rank":3)"));
  EXPECT_THAT(texts, testing::Contains(
                         testing::HasSubstr(R"("k":"coll","f":"all_gather","n":1,"d":"f32")")));
  EXPECT_THAT(texts, testing::Contains(testing::HasSubstr(
                         R"("k":"coll","f":"reduce_scatter","n":2,"d":"f32","op3":"sum")")));
  EXPECT_THAT(texts, testing::Contains(testing::HasSubstr(R"("parent":)")));
  call<int>("cudaFree", gpu);
}

}  // namespace
