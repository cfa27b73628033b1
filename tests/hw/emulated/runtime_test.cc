// CUDA's runtime without a GPU, called as a program calls it.
#include <gmock/gmock.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "hw/emulated/abi.h"
#include "hw/emulated/record.h"
#include "hw/emulated/runtime/properties.h"
#include "library.h"

namespace {

using emulated_test::call;
using emulated_test::record_count;
using emulated_test::records_since;
using foretrace::emulated::Dim3;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int kSuccess = 0, kOutOfMemory = 2, kNotSupported = 801;
constexpr size_t kMegabyte = 1 << 20;

void* allocated(size_t bytes) {
  void* p = nullptr;
  EXPECT_EQ(call<int>("cudaMalloc", &p, bytes), kSuccess);
  return p;
}

TEST(EmulatedRuntime, SaysOfItsGpuWhatTheFileSays) {
  foretrace::emulated::Properties13 p;
  ASSERT_EQ(call<int>("cudaGetDeviceProperties", static_cast<void*>(&p), 0), kSuccess);
  EXPECT_STREQ(p.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(p.multiProcessorCount, 132);
  EXPECT_EQ(p.totalGlobalMem, 85017493504u);
  int sms = 0, major = 0, devices = 0;
  call<int>("cudaDeviceGetAttribute", &sms, 16, 0);
  call<int>("cuDeviceGetAttribute", &major, 75, 0);
  call<int>("cudaGetDeviceCount", &devices);
  EXPECT_THAT((std::vector{sms, major, devices}), ElementsAre(132, 9, 2));
  EXPECT_EQ(call<int>("cudaSetDevice", 2), 101);  // cudaErrorInvalidDevice
}

TEST(EmulatedRuntime, HasNoMoreMemoryThanTheGpu) {
  void *most = nullptr, *more = nullptr;
  size_t free = 0, total = 0;
  ASSERT_EQ(call<int>("cudaMalloc", &most, size_t{80} << 30), kOutOfMemory);
  EXPECT_EQ(call<int>("cudaGetLastError"), kOutOfMemory);
  EXPECT_EQ(call<int>("cudaGetLastError"), kSuccess);
  ASSERT_EQ(call<int>("cudaMalloc", &most, size_t{79} << 30), kSuccess);
  call<int>("cudaMemGetInfo", &free, &total);
  EXPECT_EQ(total - free, size_t{79} << 30);
  EXPECT_EQ(call<int>("cudaMalloc", &more, kMegabyte * 1024), kOutOfMemory);
  EXPECT_EQ(call<int>("cudaFree", most), kSuccess);
  EXPECT_EQ(call<int>("cudaMalloc", &more, kMegabyte * 1024), kSuccess);
  call<int>("cudaFree", more);
}

TEST(EmulatedRuntime, GivesFreedAddressesOutAgainAndZeroed) {
  for (int i = 0; i < 300; ++i) {  // 24 TiB of addresses in all
    void* const p = allocated(size_t{79} << 30);
    ASSERT_NE(p, nullptr);
    char read = 1;
    call<int>("cudaMemcpy", static_cast<void*>(&read), static_cast<const void*>(p), size_t{1}, 2);
    EXPECT_EQ(read, 0);
    const char written = 7;
    call<int>("cudaMemcpy", p, static_cast<const void*>(&written), size_t{1}, 1);
    call<int>("cudaFree", p);
  }
}

TEST(EmulatedRuntime, CopiesCarryBytesAndKnowPinnedMemory) {
  const size_t first = record_count();
  void* pinned = nullptr;
  call<int>("cudaHostAlloc", &pinned, size_t{8}, 0u);
  void* const gpu = allocated(kMegabyte);
  std::memcpy(pinned, "foretrac", 8);
  call<int>("cudaMemcpyAsync", gpu, static_cast<const void*>(pinned), size_t{8}, 1,
            static_cast<void*>(nullptr));
  char back[8] = "";
  call<int>("cudaMemcpy", static_cast<void*>(back), static_cast<const void*>(gpu), size_t{8}, 2);
  EXPECT_EQ(std::memcmp(back, "foretrac", 8), 0);
  const auto texts = records_since(first);
  EXPECT_THAT(texts[2], HasSubstr(R"("k":"copy","dir":"h2d","n":8,"async":true,"pin":true)"));
  EXPECT_THAT(texts[3], HasSubstr(R"("k":"copy","dir":"d2h","n":8)"));
  EXPECT_THAT(texts[4], HasSubstr(R"("from":"data")"));
  call<int>("cudaFree", gpu);
  call<int>("cudaFreeHost", pinned);
}

TEST(EmulatedRuntime, AnswersByRuleWhatAKernelWouldHaveComputed) {
  void* const gpu = allocated(kMegabyte);
  const auto launch = [&](const char* name) {
    static char stub[2];
    static int use = 0;
    char* const s = stub + (use++ % 2);
    call<void>("__cudaRegisterFunction", static_cast<void**>(nullptr), static_cast<const char*>(s),
               static_cast<char*>(nullptr), name, -1, static_cast<void*>(nullptr),
               static_cast<void*>(nullptr), static_cast<void*>(nullptr),
               static_cast<void*>(nullptr), static_cast<int*>(nullptr));
    void* parameter = gpu;
    void* arguments[] = {&parameter};
    call<int>("cudaLaunchKernel", static_cast<const void*>(s), Dim3{1, 1, 1}, Dim3{32, 1, 1},
              static_cast<void**>(arguments), size_t{0}, static_cast<void*>(nullptr));
    bool value = false;
    call<int>("cudaMemcpy", static_cast<void*>(&value), static_cast<const void*>(gpu), size_t{1},
              2);
    return value;
  };
  EXPECT_TRUE(launch("and_kernel_cuda"));
  EXPECT_FALSE(launch("or_kernel_cuda"));
  EXPECT_TRUE(launch("compare_eq"));
  // all() of one element is a copy on the GPU
  void* const moved = static_cast<char*>(gpu) + 512;
  call<int>("cudaMemcpy", moved, static_cast<const void*>(gpu), size_t{1}, 3);
  bool read = false;
  call<int>("cudaMemcpy", static_cast<void*>(&read), static_cast<const void*>(moved), size_t{1}, 2);
  EXPECT_TRUE(read);
  const size_t first = record_count();
  const bool no = false;
  call<int>("cudaMemcpy", gpu, static_cast<const void*>(&no), size_t{1},
            1);  // what the kernel wrote is gone
  bool value = true;
  call<int>("cudaMemcpy", static_cast<void*>(&value), static_cast<const void*>(gpu), size_t{1}, 2);
  EXPECT_FALSE(value);
  EXPECT_THAT(records_since(first).back(), HasSubstr(R"("from":"data")"));
  call<int>("cudaFree", gpu);
}

TEST(EmulatedRuntime, WritesALaunchDownWithItsStreamAndItsDemangledName) {
  static char stub;
  call<void>("__cudaRegisterFunction", static_cast<void**>(nullptr),
             static_cast<const char*>(&stub), static_cast<char*>(nullptr),
             static_cast<const char*>("_ZN2at6native12_GLOBAL__N_13addEi"), -1,
             static_cast<void*>(nullptr), static_cast<void*>(nullptr), static_cast<void*>(nullptr),
             static_cast<void*>(nullptr), static_cast<int*>(nullptr));
  void* stream = nullptr;
  call<int>("cudaStreamCreateWithPriority", &stream, 1u, -1);
  const size_t first = record_count();
  foretrace::emulated::LaunchAttribute cluster{foretrace::emulated::kAttributeCluster, {}};
  const Dim3 two{2, 1, 1};
  std::memcpy(cluster.value, &two, sizeof two);
  const foretrace::emulated::LaunchConfig config{{5, 2, 1}, {128, 1, 1}, 4096, stream, &cluster, 1};
  call<int>("cudaLaunchKernelExC", &config, static_cast<const void*>(&stub),
            static_cast<void**>(nullptr));
  const auto said = json::parse(records_since(first).at(0));
  EXPECT_EQ(said["name"], "at::native::(anonymous namespace)::add(int)");
  EXPECT_EQ(said["g3"], json({5, 2, 1}));
  EXPECT_EQ(said["cl"], json({2, 1, 1}));
  EXPECT_EQ(said["sm"], 4096);
  EXPECT_GT(said["stream"], 0);
}

TEST(EmulatedRuntime, MarksTheCallsOfACaptureOnEachStreamThatJoinsIt) {
  void *a = nullptr, *b = nullptr, *event = nullptr, *graph = nullptr, *executable = nullptr,
       *gpu = allocated(kMegabyte);
  call<int>("cudaStreamCreate", &a);
  call<int>("cudaStreamCreate", &b);
  call<int>("cudaEventCreate", &event);
  const size_t first = record_count();
  call<int>("cudaStreamBeginCapture", a, 0);
  call<int>("cudaEventRecord", event, a);
  call<int>("cudaStreamWaitEvent", b, event, 0u);
  call<int>("cudaMemsetAsync", gpu, 0, size_t{8}, b);
  call<int>("cudaStreamEndCapture", a, &graph);
  call<int>("cudaGraphInstantiateWithFlags", &executable, graph, 0ull);
  call<int>("cudaMemsetAsync", gpu, 0, size_t{8}, b);
  call<int>("cudaGraphLaunch", executable, a);
  const auto texts = records_since(first);
  ASSERT_THAT(texts, SizeIs(8));
  EXPECT_THAT(texts[3], HasSubstr("\"graph\":"));
  EXPECT_THAT(texts[6], testing::Not(HasSubstr("\"graph\":")));
  EXPECT_EQ(json::parse(texts[7])["g"], json::parse(texts[0])["g"]);
  call<int>("cudaFree", gpu);
}

TEST(EmulatedRuntime, RefusesByNameWhatItHasNot) {
  const size_t first = record_count();
  EXPECT_EQ(call<int>("cudaIpcGetMemHandle"), kNotSupported);
  EXPECT_EQ(call<int>("cusparseCreate"), 10);
  const auto texts = records_since(first);
  EXPECT_THAT(texts, ElementsAre(HasSubstr("cudaIpcGetMemHandle"), HasSubstr("cusparseCreate")));
}

TEST(EmulatedRuntime, TimeInTheLibraryIsNotTheProgramsTime) {
  call<void>("foretrace_set_origin");
  void* const gpu = allocated(kMegabyte);
  std::string mirror(kMegabyte, 'x');
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 2000; ++i)  // 2 GB are copied, in the library
    call<int>("cudaMemcpyAsync", gpu, static_cast<const void*>(mirror.data()), kMegabyte, 1,
              static_cast<void*>(nullptr));
  const auto took = std::chrono::steady_clock::now() - begin;
  const auto counted = std::chrono::nanoseconds(call<int64_t>("foretrace_now"));
  EXPECT_LT(counted, took / 2);
  call<int>("cudaFree", gpu);
}

}  // namespace
