#include "reports/capture/kernel_kind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>

#include "reports/capture/kernel_name.h"

namespace foretrace::capture {
namespace {

// Parts of names, in lower case, of the kernels of cuBLAS, cuDNN, CUTLASS, hipBLASLt (Cijk), MIOpen
// (igemm, Winograd), oneDNN (gemm_kernel, gen_conv), PyTorch, Triton as Inductor names what it
// writes, FlashAttention, xFormers and AITER. The first list that has a part of the name decides.

/// What is of memory whatever else its name has: products of a matrix and a vector read each
/// element once.
constexpr std::array<std::string_view, 12> kMemoryFirst{
    "gemv",       "splitkreduce", "im2col",      "triton_poi", "triton_red", "triton_per",
    "cudnn::bn_", "transpose",    "elementwise", "reduce_",    "softmax",    "norm"};

constexpr std::array<std::string_view, 31> kArithmetic{
    "gemm",       "cutlass",   "cijk_",      "nvjet",          "xmma",   "scudnn",   "16816",
    "1688",       "conv2d",    "conv_fprop", "dgrad",          "wgrad",  "fprop",    "winograd",
    "sp3asmconv", "miopensp3", "convolve",   "conv_depthwise", "flash_", "fmha",     "attention",
    "attn",       "mha_",      "triton_mm",  "triton_tem",     "matmul", "gen_conv", "grouped_conv",
    "fc-dtype",   "conv_fwd",  "conv_bwd"};

constexpr std::array<std::string_view, 41> kMemory{
    "vectorized",   "reduce",      "copy",          "cat",        "index",        "embedding",
    "adam",         "adagrad",     "dropout",       "fill",       "memset",       "memcpy",
    "permute",      "gather",      "scatter",       "pool",       "upsample",     "rotary",
    "rope",         "silu",        "gelu",          "relu",       "add_",         "mul_",
    "cast",         "convert",     "quant",         "nchwtonhwc", "nhwctonchw",   "sgd",
    "foreach",      "bn_",         "rms",           "kvcache",    "scan",         "sort",
    "multi_tensor", "multitensor", "tensor_kernel", "nll_loss",   "cross_entropy"};

bool has_one(std::string_view name, std::span<const std::string_view> parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

KernelKind kind_of_words(std::string_view words) {
  std::string lower{words};
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  // A library of embeddings and quantization, named after what it began with.
  for (auto at = lower.find("fbgemm"); at != std::string::npos; at = lower.find("fbgemm")) {
    lower.erase(at, std::string_view{"fbgemm"}.size());
  }
  if (has_one(lower, kMemoryFirst)) return KernelKind::Hbm;
  if (has_one(lower, kArithmetic)) return KernelKind::Gemm;
  return has_one(lower, kMemory) ? KernelKind::Hbm : KernelKind::Unknown;
}

/// The function's own path first: its template's arguments may be anything.
KernelKind kind_of_kernel(std::string_view name) {
  if (is_nccl(name)) return KernelKind::Nccl;
  const KernelKind own = kind_of_words(function_of(name));
  return own != KernelKind::Unknown ? own : kind_of_words(name);
}

}  // namespace

KernelKind kind_of(EventKind event, std::string_view name) {
  if (event == EventKind::Fill) return KernelKind::Hbm;
  if (event != EventKind::Copy) return kind_of_kernel(name);
  const bool by_host = name.find("HtoD") != std::string_view::npos ||
                       name.find("DtoH") != std::string_view::npos ||
                       name.find("Host") != std::string_view::npos;
  if (by_host) return KernelKind::Pcie;
  return name.find("DtoD") != std::string_view::npos ? KernelKind::Hbm : KernelKind::Unknown;
}

std::string_view what_if_word(KernelKind kind) {
  switch (kind) {
    case KernelKind::Gemm:
      return "gemm";
    case KernelKind::Hbm:
      return "hbm";
    case KernelKind::Pcie:
      return "pcie";
    case KernelKind::Nccl:
    case KernelKind::Unknown:
      break;
  }
  return {};
}

}  // namespace foretrace::capture
