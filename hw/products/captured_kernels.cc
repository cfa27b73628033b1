#include "hw/products/captured_kernels.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>

#include "hw/cuda/cuda_check.h"

namespace foretrace::hw {
namespace {

void driver_check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  throw std::runtime_error{fmt::format("{}: CUDA driver error {}", what, static_cast<int>(result))};
}

using GetName = CUresult (*)(const char**, CUfunction);
using GetAttribute = CUresult (*)(int*, CUfunction_attribute, CUfunction);
using GetParams = CUresult (*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2*);
using GetNodeAttribute = CUresult (*)(CUgraphNode, CUkernelNodeAttrID, CUkernelNodeAttrValue*);
using GetFunction = CUresult (*)(CUfunction*, CUkernel);
using GetOccupancy = CUresult (*)(int*, CUfunction, int, std::size_t);

}  // namespace

CapturedKernels::CapturedKernels() : library_{dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)} {
  if (library_ == nullptr) throw std::runtime_error{fmt::format("libcuda.so.1: {}", dlerror())};
}

CapturedKernels::~CapturedKernels() { dlclose(library_); }

void* CapturedKernels::symbol(const char* name) const {
  void* found = dlsym(library_, name);
  if (found == nullptr) {
    throw std::runtime_error{fmt::format("the driver has no {}: it must be 545 or newer", name)};
  }
  return found;
}

std::vector<KernelLaunch> CapturedKernels::of(cudaGraph_t graph) const {
  const auto params_of = reinterpret_cast<GetParams>(symbol("cuGraphKernelNodeGetParams_v2"));
  const auto node_attribute =
      reinterpret_cast<GetNodeAttribute>(symbol("cuGraphKernelNodeGetAttribute"));
  const auto function_of = reinterpret_cast<GetFunction>(symbol("cuKernelGetFunction"));
  const auto name_of_function = reinterpret_cast<GetName>(symbol("cuFuncGetName"));
  const auto attribute = reinterpret_cast<GetAttribute>(symbol("cuFuncGetAttribute"));
  const auto occupancy =
      reinterpret_cast<GetOccupancy>(symbol("cuOccupancyMaxActiveBlocksPerMultiprocessor"));

  std::size_t count = 0;
  cuda_check(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  cuda_check(cudaGraphGetNodes(graph, nodes.data(), &count));
  std::vector<KernelLaunch> kernels;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    cuda_check(cudaGraphNodeGetType(node, &type));
    if (type != cudaGraphNodeTypeKernel) continue;
    CUDA_KERNEL_NODE_PARAMS_v2 params{};
    driver_check(params_of(node, &params), "cuGraphKernelNodeGetParams");
    CUfunction function = params.func;
    if (function == nullptr) {
      driver_check(function_of(&function, params.kern), "cuKernelGetFunction");
    }
    const char* name = nullptr;
    driver_check(name_of_function(&name, function), "cuFuncGetName");
    KernelLaunch kernel;
    kernel.name = name;
    kernel.grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
    kernel.block = {params.blockDimX, params.blockDimY, params.blockDimZ};
    kernel.dynamic_shared_bytes = params.sharedMemBytes;
    const auto read = [&](CUfunction_attribute which) {
      int value = 0;
      return attribute(&value, which, function) == CUDA_SUCCESS ? value : 0;
    };
    kernel.static_shared_bytes =
        static_cast<std::size_t>(read(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    kernel.registers = read(CU_FUNC_ATTRIBUTE_NUM_REGS);
    // A cluster is given with the launch, or fixed when the kernel is compiled.
    CUkernelNodeAttrValue value{};
    if (node_attribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value) == CUDA_SUCCESS &&
        value.clusterDim.x > 0) {
      kernel.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
    } else if (read(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH) > 0) {
      kernel.cluster = {static_cast<unsigned>(read(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)),
                        static_cast<unsigned>(read(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT)),
                        static_cast<unsigned>(read(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH))};
    }
    const unsigned threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
    if (occupancy(&kernel.blocks_per_sm, function, static_cast<int>(threads),
                  kernel.dynamic_shared_bytes) != CUDA_SUCCESS) {
      kernel.blocks_per_sm = 0;
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

CapturedGraph::CapturedGraph(cudaStream_t stream, const std::function<void()>& calls) {
  cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  try {
    calls();
  } catch (...) {
    cuda_ignore(cudaStreamEndCapture(stream, &graph_));
    if (graph_ != nullptr) cuda_ignore(cudaGraphDestroy(graph_));
    throw;
  }
  cuda_check(cudaStreamEndCapture(stream, &graph_));
}

CapturedGraph::~CapturedGraph() {
  if (executable_ != nullptr) cuda_ignore(cudaGraphExecDestroy(executable_));
  if (graph_ != nullptr) cuda_ignore(cudaGraphDestroy(graph_));
}

cudaGraphExec_t CapturedGraph::executable(cudaStream_t stream) {
  if (executable_ == nullptr) {
    cuda_check(cudaGraphInstantiate(&executable_, graph_, 0));
    cuda_check(cudaGraphUpload(executable_, stream));
  }
  return executable_;
}

}  // namespace foretrace::hw
