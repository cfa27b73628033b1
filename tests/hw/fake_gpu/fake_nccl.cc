// NCCL over MPI, one device per process, and the few calls of cuBLAS and CUPTI that are made.
#include <cublas_v2.h>
#include <cupti.h>
#include <mpi.h>
#include <nccl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "tests/hw/fake_gpu/fake_gpu.h"

struct ncclComm {
  MPI_Comm mpi = MPI_COMM_NULL;
  int rank = 0;
  int count = 1;
  std::vector<void*> registered;
};

namespace {

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclFloat64:
    case ncclInt64:
    case ncclUint64:
      return 8;
    default:
      return 4;
  }
}

MPI_Datatype mpi_type(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
      return MPI_DOUBLE;
    case ncclInt32:
      return MPI_INT;
    case ncclInt64:
      return MPI_LONG_LONG;
    default:
      return MPI_FLOAT;
  }
}

MPI_Op mpi_op(ncclRedOp_t op) {
  switch (op) {
    case ncclProd:
      return MPI_PROD;
    case ncclMin:
      return MPI_MIN;
    case ncclMax:
      return MPI_MAX;
    default:
      return MPI_SUM;
  }
}

/// Sends and receives of one group run at once.
struct Transfers {
  std::vector<std::function<void(std::vector<MPI_Request>&)>> begin;
};
std::multiset<void*> registered_anywhere;
thread_local int group_depth = 0;
thread_local Transfers group;

ncclResult_t transfer(std::function<void(std::vector<MPI_Request>&)> begin) {
  group.begin.push_back(std::move(begin));
  if (group_depth > 0) return ncclSuccess;
  ++group_depth;
  return ncclGroupEnd();
}

std::vector<char> copy_of(const void* data, std::size_t bytes) {
  const auto* begin = static_cast<const char*>(data);
  return {begin, begin + bytes};
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "the stand-in's NCCL failed"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int count, ncclUniqueId, int rank) {
  *comm = new ncclComm{MPI_COMM_NULL, rank, count, {}};
  if (count == 1) return ncclSuccess;
  // The members are the first processes of the world, as in every test.
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group members = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int range[1][3] = {{0, count - 1, 1}};
  MPI_Group_range_incl(world, 1, range, &members);
  MPI_Comm_create_group(MPI_COMM_WORLD, members, 0, &(*comm)->mpi);
  MPI_Group_free(&members);
  MPI_Group_free(&world);
  return ncclSuccess;
}
ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int*) {
  if (count != 1) return ncclInvalidUsage;
  return ncclCommInitRank(comms, 1, ncclUniqueId{}, 0);
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm->mpi != MPI_COMM_NULL) MPI_Comm_free(&comm->mpi);
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclMemAlloc(void** memory, size_t bytes) {
  return cudaMalloc(memory, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* memory) {
  if (registered_anywhere.contains(memory)) {
    std::fputs("ncclMemFree of a registered buffer\n", stderr);
    std::abort();
  }
  return cudaFree(memory) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
// A handle is the buffer: one that was given back is refused.
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buffer, size_t, void** handle) {
  comm->registered.push_back(buffer);
  registered_anywhere.insert(buffer);
  *handle = buffer;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  const auto found = std::find(comm->registered.begin(), comm->registered.end(), handle);
  if (found == comm->registered.end()) return ncclInvalidUsage;
  comm->registered.erase(found);
  registered_anywhere.extract(handle);  // one of its registrations
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--group_depth > 0 || group.begin.empty()) return ncclSuccess;
  fake_gpu::queue([transfers = std::exchange(group, {})] {
    std::vector<MPI_Request> requests;
    for (const auto& begin : transfers.begin) begin(requests);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  });
  return ncclSuccess;
}
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t) {
  const auto bytes = static_cast<int>(count * bytes_of(type));
  return transfer([=](std::vector<MPI_Request>& requests) {
    // Synchronous: a send that nobody receives hangs.
    MPI_Issend(from, bytes, MPI_BYTE, peer, 0, comm->mpi, &requests.emplace_back());
  });
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t) {
  const auto bytes = static_cast<int>(count * bytes_of(type));
  return transfer([=](std::vector<MPI_Request>& requests) {
    MPI_Irecv(to, bytes, MPI_BYTE, peer, 0, comm->mpi, &requests.emplace_back());
  });
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t) {
  fake_gpu::queue([=] {
    const auto sent = copy_of(from, count * bytes_of(type));
    MPI_Allreduce(sent.data(), to, static_cast<int>(count), mpi_type(type), mpi_op(op), comm->mpi);
  });
  return ncclSuccess;
}
ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t) {
  fake_gpu::queue([=] {
    const auto sent = copy_of(from, count * bytes_of(type));
    MPI_Reduce(sent.data(), to, static_cast<int>(count), mpi_type(type), mpi_op(op), root,
               comm->mpi);
  });
  return ncclSuccess;
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t) {
  fake_gpu::queue([=] {
    const std::size_t bytes = count * bytes_of(type);
    if (comm->rank == root) std::memmove(to, from, bytes);
    MPI_Bcast(to, static_cast<int>(bytes), MPI_BYTE, root, comm->mpi);
  });
  return ncclSuccess;
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t) {
  fake_gpu::queue([=] {
    const auto sent = copy_of(from, count * bytes_of(type));
    const auto bytes = static_cast<int>(sent.size());
    MPI_Allgather(sent.data(), bytes, MPI_BYTE, to, bytes, MPI_BYTE, comm->mpi);
  });
  return ncclSuccess;
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t) {
  fake_gpu::queue([=] {
    const auto sent = copy_of(from, count * bytes_of(type) * static_cast<size_t>(comm->count));
    MPI_Reduce_scatter_block(sent.data(), to, static_cast<int>(count), mpi_type(type), mpi_op(op),
                             comm->mpi);
  });
  return ncclSuccess;
}
// No test uses these.
ncclResult_t ncclAlltoAll(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t) {
  return ncclInvalidUsage;
}
ncclResult_t ncclGather(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) {
  return ncclInvalidUsage;
}
ncclResult_t ncclScatter(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t,
                         cudaStream_t) {
  return ncclInvalidUsage;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(0x1000);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetProperty(libraryPropertyType, int* value) {
  *value = 0;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t) { return ""; }
cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                            const void*, const void*, cudaDataType, int, const void*, cudaDataType,
                            int, const void*, void*, cudaDataType, int, cublasComputeType_t,
                            cublasGemmAlgo_t) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int,
                                          int, int, const void*, const void*, cudaDataType, int,
                                          long long, const void*, cudaDataType, int, long long,
                                          const void*, void*, cudaDataType, int, long long, int,
                                          cublasComputeType_t, cublasGemmAlgo_t) {
  return CUBLAS_STATUS_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityDisable(CUpti_ActivityKind) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityFlushAll(uint32_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityGetNextRecord(uint8_t*, size_t, CUpti_Activity**) {
  return CUPTI_ERROR_MAX_LIMIT_REACHED;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  *dropped = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t) {
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t*) {
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc,
                                           CUpti_BuffersCallbackCompleteFunc) {
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc) {
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetStreamIdEx(CUcontext, CUstream, uint8_t, uint32_t* id) {
  *id = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetVersion(uint32_t* version) {
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

}  // extern "C"
