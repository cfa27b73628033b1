// Kernels' names, as people write them, and what bounds a kernel by its name.
#include "reports/capture/kernel_name.h"

#include <gtest/gtest.h>

#include "reports/capture/kernel_kind.h"

namespace foretrace::capture {
namespace {

TEST(KernelName, IsTheFunctionsOwn) {
  EXPECT_EQ(short_name("void at::native::vectorized_elementwise_kernel<4, F>(int, F)"),
            "vectorized_elementwise_kernel");
  EXPECT_EQ(short_name("Memcpy DtoD (Device -> Device)"), "Memcpy_DtoD");
  EXPECT_EQ(short_name("(anonymous)"), "kernel");
  EXPECT_EQ(short_name(""), "kernel");
  EXPECT_EQ(short_name("2d_kernel"), "kernel_2d_kernel");
  EXPECT_EQ(short_name("Null"), "kernel_Null") << "a word of YAML's own";
}

TEST(KernelName, StandsBehindNamespacesWithoutAName) {
  EXPECT_EQ(short_name("void at::native::(anonymous namespace)::cunn_SoftMaxForwardReg<c10::Half, "
                       "at::native::(anonymous namespace)::Epilogue, 6>(c10::Half*)"),
            "cunn_SoftMaxForwardReg");
  EXPECT_EQ(short_name("void (anonymous namespace)::elementwise_kernel_with_index<int>(int)"),
            "elementwise_kernel_with_index");
  EXPECT_EQ(short_name("a::b<(c)1>::run(int, std::array<char*, 2>)"), "run");
}

TEST(KernelName, OfALibrarysTemplateHasItsArgument) {
  EXPECT_EQ(short_name("void cutlass::Kernel<cutlass_80_s1688gemm_256x128_nt>(cutlass_80_s1688gemm_"
                       "256x128_nt::Params)"),
            "Kernel_cutlass_80_s1688gemm_256x128_nt");
  EXPECT_EQ(short_name("void cutlass::device_kernel<at::(anonymous namespace)::Gemm<float, "
                       "int>>(int)"),
            "device_kernel_Gemm");
}

TEST(KernelName, IsReadFromMangledOnes) {
  EXPECT_EQ(short_name("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bLi256EEEvPT0_"),
            "add_rmsnorm_quant_kernel");
  EXPECT_EQ(short_name("_Z4workPf"), "work");
  EXPECT_EQ(short_name("_ZN99999999999999999999abc"), "abc") << "longer than the name is";
}

TEST(KernelKind, IsToldByTheName) {
  const auto kernel = [](std::string_view name) { return kind_of(EventKind::Kernel, name); };
  for (const char* const name :
       {"ampere_sgemm_128x64_nn", "Cijk_Alik_Bljk_BBS_BH_MT320x224x64", "nvjet_tst_128x256",
        "void flash::flash_fwd_kernel<Traits>(Params)", "_ZN7ck_tile6kentryILi2EFmhaBatchPrefill",
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64>(P)",
        "sm80_xmma_fprop_implicit_gemm_tf32", "volta_scudnn_128x64_relu_medium_nn_v1",
        "void cudnn::winograd_nonfused::winogradForwardData4x4<float>(X)", "gemm_kernel"}) {
    EXPECT_EQ(kernel(name), KernelKind::Gemm) << name;
  }
  for (const char* const name :
       {"void at::native::vectorized_elementwise_kernel<4, gemm_like>(int)",
        "triton_red_fused_add_addmm_mul_native_layer_norm_16", "triton_poi_fused_convolution_3",
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>(X)", "void gemv2T_kernel_val<int>(X)",
        "void fbgemm_gpu::permute_2D_data_kernel<false, int>(int)",
        "void (anonymous namespace)::softmax_warp_forward<float>(float*)",
        "void splitKreduce_kernel<float>(X)"}) {
    EXPECT_EQ(kernel(name), KernelKind::Hbm) << name;
  }
  EXPECT_EQ(kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"), KernelKind::Nccl);
  EXPECT_EQ(kernel("mystery"), KernelKind::Unknown);
  EXPECT_EQ(kind_of(EventKind::Copy, "Memcpy HtoD (Pinned -> Device)"), KernelKind::Pcie);
  EXPECT_EQ(kind_of(EventKind::Copy, "Memcpy DtoD (Device -> Device)"), KernelKind::Hbm);
  EXPECT_EQ(kind_of(EventKind::Fill, "Memset (Device)"), KernelKind::Hbm);
}

}  // namespace
}  // namespace foretrace::capture
