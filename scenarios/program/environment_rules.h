// The variables of CUDA and NCCL that a scenario may set, and what each takes. A table of its own:
// environment.cc judges by it.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

namespace foretrace {

/// What a variable takes. Text: whatever NCCL makes of it, no times here depend on it.
enum class Kind : std::uint8_t {
  Number,
  Algorithms,
  Protocols,
  Path,
  Loading,
  Queues,
  Launch,
  NoPlugin,  ///< the word none only
  Text
};

struct Rule {
  const char* name;
  Kind kind = Kind::Number;
  std::int64_t least = 0;
  std::int64_t most = 1;
  std::int64_t multiple = 1;
};

inline constexpr std::int64_t kMaxChannels = 64;  // nccl src/include/device.h, MAXCHANNELS
inline constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

// CUDA: C++ Programming Guide, CUDA Environment Variables. NCCL 2.28: src/init.cc,
// src/graph/tuning.cc, connect.cc and paths.cc, src/transport/nvls.cc; a least of a buffer or
// chunk is what NCCL can still work with.
inline constexpr std::array kRules{
    Rule{"CUDA_DEVICE_MAX_CONNECTIONS", Kind::Number, 1, 32},
    Rule{"CUDA_DEVICE_MAX_COPY_CONNECTIONS", Kind::Number, 1, 32},
    Rule{"CUDA_LAUNCH_BLOCKING"},
    Rule{"CUDA_MODULE_LOADING", Kind::Loading},
    Rule{"CUDA_SCALE_LAUNCH_QUEUES", Kind::Queues},
    Rule{"NCCL_ALGO", Kind::Algorithms},
    Rule{"NCCL_PROTO", Kind::Protocols},
    Rule{"NCCL_MIN_CTAS", Kind::Number, 1, kMaxChannels},
    Rule{"NCCL_MAX_CTAS", Kind::Number, 1, kMaxChannels},
    Rule{"NCCL_MIN_NCHANNELS", Kind::Number, 0, kMaxChannels},
    Rule{"NCCL_MAX_NCHANNELS", Kind::Number, 1, kMaxChannels},
    Rule{"NCCL_NTHREADS", Kind::Number, 64, 512, 32},
    Rule{"NCCL_LL128_NTHREADS", Kind::Number, 160, 640, 32},
    Rule{"NCCL_LL_BUFFSIZE", Kind::Number, 1024, kMaxInt},
    Rule{"NCCL_LL128_BUFFSIZE", Kind::Number, 16384, kMaxInt},
    Rule{"NCCL_BUFFSIZE", Kind::Number, 4096, kMaxInt},
    Rule{"NCCL_P2P_DISABLE"},
    Rule{"NCCL_P2P_LEVEL", Kind::Path},
    Rule{"NCCL_P2P_NET_CHUNKSIZE", Kind::Number, 1024, kMaxInt},
    Rule{"NCCL_P2P_PCI_CHUNKSIZE", Kind::Number, 1024, kMaxInt},
    Rule{"NCCL_P2P_NVL_CHUNKSIZE", Kind::Number, 1024, kMaxInt},
    Rule{"NCCL_P2P_LL_THRESHOLD", Kind::Number, 0, kMaxInt},
    Rule{"NCCL_P2P_DIRECT_DISABLE"},
    Rule{"NCCL_P2P_USE_CUDA_MEMCPY"},
    Rule{"NCCL_P2P_PXN_LEVEL", Kind::Number, 0, 2},
    Rule{"NCCL_MIN_P2P_NCHANNELS", Kind::Number, 1, kMaxChannels},
    Rule{"NCCL_MAX_P2P_NCHANNELS", Kind::Number, 1, kMaxChannels},
    Rule{"NCCL_NCHANNELS_PER_NET_PEER", Kind::Number, 1, kMaxChannels},
    Rule{"NCCL_CHUNK_SIZE", Kind::Number, 0, kMaxInt},
    Rule{"NCCL_NVLS_ENABLE", Kind::Number, 0, 2},
    Rule{"NCCL_NVLS_NCHANNELS", Kind::Number, 1, kMaxChannels},
    Rule{"NCCL_NVLS_CHUNKSIZE", Kind::Number, 512, kMaxInt},
    Rule{"NCCL_NVLSTREE_MAX_CHUNKSIZE", Kind::Number, 512, kMaxInt},
    Rule{"NCCL_PAT_ENABLE", Kind::Number, 0, 2},
    Rule{"NCCL_LL128_C2C"},
    Rule{"NCCL_COLLNET_ENABLE"},
    Rule{"NCCL_NET_OVERHEAD", Kind::Number, 0, kMaxInt},
    Rule{"NCCL_NET_GDR_LEVEL", Kind::Path},
    Rule{"NCCL_CROSS_NIC", Kind::Number, 0, 2},
    Rule{"NCCL_PXN_DISABLE"},
    Rule{"NCCL_NVB_DISABLE"},
    Rule{"NCCL_SHM_DISABLE"},
    Rule{"NCCL_CUMEM_ENABLE"},
    Rule{"NCCL_CGA_CLUSTER_SIZE", Kind::Number, 0, 8},
    Rule{"NCCL_GRAPH_MIXING_SUPPORT"},
    Rule{"NCCL_GRAPH_REGISTER"},
    Rule{"NCCL_LOCAL_REGISTER"},
    Rule{"NCCL_LEGACY_CUDA_REGISTER"},
    Rule{"NCCL_LAUNCH_MODE", Kind::Launch},
    Rule{"NCCL_LAUNCH_ORDER_IMPLICIT"},
    Rule{"NCCL_RUNTIME_CONNECT"},
    // By these NCCL finds its network. Where ranks are on several nodes, sim/environment_check.cc
    // says what a prediction makes of them.
    Rule{"NCCL_IB_DISABLE"},
    Rule{"NCCL_IB_HCA", Kind::Text},
    Rule{"NCCL_NET", Kind::Text},
    Rule{"NCCL_NET_PLUGIN", Kind::NoPlugin},
    Rule{"NCCL_TUNER_PLUGIN", Kind::NoPlugin},
    Rule{"NCCL_PROFILER_PLUGIN", Kind::NoPlugin},
    Rule{"NCCL_MNNVL_ENABLE", Kind::Number, 0, 2},
    // Nothing here depends on these (NCCL's user guide, Environment Variables).
    Rule{"NCCL_DEBUG", Kind::Text},
    Rule{"NCCL_DEBUG_SUBSYS", Kind::Text},
    Rule{"NCCL_DEBUG_TIMESTAMP_FORMAT", Kind::Text},
    Rule{"NCCL_DEBUG_TIMESTAMP_LEVELS", Kind::Text},
    Rule{"NCCL_SET_THREAD_NAME", Kind::Text},
    Rule{"NCCL_SOCKET_IFNAME", Kind::Text},
    Rule{"NCCL_SOCKET_FAMILY", Kind::Text},
    Rule{"NCCL_SOCKET_NTHREADS", Kind::Text},
    Rule{"NCCL_SOCKET_RETRY_CNT", Kind::Text},
    Rule{"NCCL_SOCKET_RETRY_SLEEP_MSEC", Kind::Text},
    Rule{"NCCL_NSOCKS_PERTHREAD", Kind::Text},
    Rule{"NCCL_OOB_NET_ENABLE", Kind::Text},
    Rule{"NCCL_OOB_NET_IFNAME", Kind::Text},
    Rule{"NCCL_COMM_ID", Kind::Text},
    Rule{"NCCL_HOSTID", Kind::Text},
    Rule{"NCCL_COMM_BLOCKING", Kind::Text},
    Rule{"NCCL_IGNORE_CPU_AFFINITY", Kind::Text},
    Rule{"NCCL_IGNORE_DISABLED_P2P", Kind::Text},
    Rule{"NCCL_CHECK_POINTERS", Kind::Text},
    Rule{"NCCL_CUMEM_HOST_ENABLE", Kind::Text},
    Rule{"NCCL_CTA_POLICY", Kind::Text},
    Rule{"NCCL_DMABUF_ENABLE", Kind::Text},
    Rule{"NCCL_GDRCOPY_ENABLE", Kind::Text},
    Rule{"NCCL_GDR_FLUSH_DISABLE", Kind::Text},
    Rule{"NCCL_IB_ADAPTIVE_ROUTING", Kind::Text},
    Rule{"NCCL_IB_ADDR_FAMILY", Kind::Text},
    Rule{"NCCL_IB_ADDR_RANGE", Kind::Text},
    Rule{"NCCL_IB_AR_THRESHOLD", Kind::Text},
    Rule{"NCCL_IB_CUDA_SUPPORT", Kind::Text},
    Rule{"NCCL_IB_ECE_ENABLE", Kind::Text},
    Rule{"NCCL_IB_FIFO_TC", Kind::Text},
    Rule{"NCCL_IB_GID_INDEX", Kind::Text},
    Rule{"NCCL_IB_MERGE_NICS", Kind::Text},
    Rule{"NCCL_IB_MERGE_VFS", Kind::Text},
    Rule{"NCCL_IB_PCI_RELAXED_ORDERING", Kind::Text},
    Rule{"NCCL_IB_PKEY", Kind::Text},
    Rule{"NCCL_IB_QPS_PER_CONNECTION", Kind::Text},
    Rule{"NCCL_IB_RETRY_CNT", Kind::Text},
    Rule{"NCCL_IB_ROCE_VERSION_NUM", Kind::Text},
    Rule{"NCCL_IB_RETURN_ASYNC_EVENTS", Kind::Text},
    Rule{"NCCL_IB_SL", Kind::Text},
    Rule{"NCCL_IB_SPLIT_DATA_ON_QPS", Kind::Text},
    Rule{"NCCL_IB_TC", Kind::Text},
    Rule{"NCCL_IB_TIMEOUT", Kind::Text},
    Rule{"NCCL_IB_USE_INLINE", Kind::Text},
    Rule{"NCCL_IB_WARN_RAIL_LOCAL", Kind::Text},
    Rule{"NCCL_NET_DISABLE_INTRA", Kind::Text},
    Rule{"NCCL_NET_FORCE_FLUSH", Kind::Text},
    Rule{"NCCL_NET_GDR_C2C", Kind::Text},
    Rule{"NCCL_NET_GDR_READ", Kind::Text},
    Rule{"NCCL_NET_MERGE_LEVEL", Kind::Text},
    Rule{"NCCL_NET_OPTIONAL_RECV_COMPLETION", Kind::Text},
    Rule{"NCCL_NET_SHARED_BUFFERS", Kind::Text},
    Rule{"NCCL_NET_SHARED_COMMS", Kind::Text},
    Rule{"NCCL_PROXY_APPEND_BATCH_SIZE", Kind::Text},
    Rule{"NCCL_RAS_ENABLE", Kind::Text},
    Rule{"NCCL_SHM_USE_CUDA_MEMCPY", Kind::Text},
    Rule{"NCCL_SHM_LOCALITY", Kind::Text},
    Rule{"NCCL_SINGLE_RING_THRESHOLD", Kind::Text},
    Rule{"NCCL_TREE_THRESHOLD", Kind::Text},
    Rule{"NCCL_MAX_NRINGS", Kind::Text},
    Rule{"NCCL_MIN_NRINGS", Kind::Text},
    Rule{"NCCL_UID_STAGGER_RATE", Kind::Text},
    Rule{"NCCL_UID_STAGGER_THRESHOLD", Kind::Text},
    Rule{"NCCL_WIN_ENABLE", Kind::Text},
    Rule{"NCCL_WORK_FIFO_DEPTH", Kind::Text},
    Rule{"NCCL_ASYNC_ERROR_HANDLING", Kind::Text},  // PyTorch's, as TORCH_NCCL_...
    Rule{"NCCL_BLOCKING_WAIT", Kind::Text},
};

/// What NCCL reads and no scenario may set, because a file or a library decides then.
struct RefusedVariable {
  const char* name;
  const char* why;
  const char* hint;
};
inline constexpr std::array kRefused{
    RefusedVariable{"NCCL_TOPO_FILE", "names a file with the machine's topology, which is not read",
                    "node: in a machine file says it: link, pcie, sockets, nics, nic_path"},
    RefusedVariable{"NCCL_GRAPH_FILE", "names a file with NCCL's channels, which is not read",
                    "nccl.search_channels in a machine file says how many there are"},
    RefusedVariable{"NCCL_CONF_FILE", "names a file with further variables, which is not read",
                    "set them here"},
    RefusedVariable{"NCCL_TOPO_DUMP_FILE", "writes a file, and changes nothing else", ""},
    RefusedVariable{"NCCL_GRAPH_DUMP_FILE", "writes a file, and changes nothing else", ""},
    RefusedVariable{"NCCL_DEBUG_FILE", "writes a file, and changes nothing else",
                    "NCCL_DEBUG alone is taken"},
};

}  // namespace foretrace
