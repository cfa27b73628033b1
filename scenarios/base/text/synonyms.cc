#include "scenarios/base/text/synonyms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace foretrace {
namespace {

struct Synonym {
  std::string_view foreign;  ///< in snake case, without 'cuda', 'nccl', 'torch' before it
  std::string_view own;      ///< offered where it may stand
  std::string_view note{};   ///< what to know of it; with `is_gone`: in its place
  bool is_gone = false;      ///< there is no such word: only the note helps
};

constexpr std::string_view kBytes = "in bytes, with a unit: 4KiB, or $n * 4B";
constexpr std::string_view kStreamsDevice =
    "an operation runs on the device of its stream: streams: {s: {device: 1}}";
constexpr std::string_view kBuffersKind = "the kind of a copy follows from its buffers";
constexpr std::string_view kPacked = "matrices are packed: m, k and m are the leading dimensions";

// clang-format off: one line per word reads as a table. Of several with one foreign word the first
// counts that may stand there.
constexpr std::array kSynonyms{
    // who runs
    Synonym{"rank", "process"},
    Synonym{"rank", "peer"},
    Synonym{"rank", "root"},
    Synonym{"ranks", "processes"},
    Synonym{"ranks", "members"},
    Synonym{"nranks", "processes"},
    Synonym{"num_ranks", "processes"},
    Synonym{"n_ranks", "processes"},
    Synonym{"world_size", "processes"},
    Synonym{"nproc", "processes"},
    Synonym{"nprocs", "processes"},
    Synonym{"nproc_per_node", "processes", "over all nodes"},
    Synonym{"local_rank", "process"},
    Synonym{"pid", "process"},
    Synonym{"gpus", "devices"},
    Synonym{"ngpus", "devices"},
    Synonym{"num_gpus", "devices"},
    Synonym{"n_gpus", "devices"},
    Synonym{"device_count", "devices"},
    Synonym{"gpu", "device"},
    Synonym{"num_nodes", "nodes"},
    Synonym{"nnodes", "nodes"},
    Synonym{"device", "stream", kStreamsDevice, true},
    Synonym{"gpu", "stream", kStreamsDevice, true},
    Synonym{"device", "processes",
            "a thread drives every device of its process: streams and "
            "buffers have a device",
            true},
    Synonym{"gpu", "processes",
            "a thread drives every device of its process: streams and buffers "
            "have a device",
            true},
    // the file
    Synonym{"env", "environment"},
    Synonym{"comms", "communicators"},
    Synonym{"groups", "process_groups"},
    Synonym{"semaphores", "signals"},
    Synonym{"tensors", "buffers"},
    Synonym{"memory", "buffers"},
    Synonym{"variables", "parameters"},
    Synonym{"asserts", "expect"},
    Synonym{"assert", "expect"},
    Synonym{"version", "schema_version"},
    Synonym{"program", "threads"},
    Synonym{"ops", "threads"},
    Synonym{"warmups", "warmup"},
    // sizes and types
    Synonym{"count", "size", kBytes},
    Synonym{"bytes", "size", kBytes},
    Synonym{"nbytes", "size", kBytes},
    Synonym{"numel", "size", kBytes},
    Synonym{"num_bytes", "size", kBytes},
    Synonym{"elements", "size", kBytes},
    Synonym{"sendcount", "size", kBytes},
    Synonym{"recvcount", "size", kBytes},
    Synonym{"length", "size", kBytes},
    Synonym{"shape", "size", kBytes},
    Synonym{"dtype", "type"},
    Synonym{"datatype", "type"},
    Synonym{"data_type", "type"},
    Synonym{"float", "float32"},
    Synonym{"double", "float64"},
    Synonym{"half", "float16"},
    Synonym{"fp16", "float16"},
    Synonym{"fp32", "float32"},
    Synonym{"fp64", "float64"},
    Synonym{"bf16", "bfloat16"},
    Synonym{"tf32", "float32", "with TF32 off"},
    Synonym{"int", "int32"},
    Synonym{"long", "int64"},
    Synonym{"char", "int8"},
    Synonym{"uint8", "int8"},
    Synonym{"uint32", "int32"},
    Synonym{"uint64", "int64"},
    Synonym{"byte", "int8"},
    Synonym{"mean", "avg"},
    Synonym{"average", "avg"},
    Synonym{"add", "sum"},
    Synonym{"product", "prod"},
    Synonym{"mul", "prod"},
    Synonym{"minimum", "min"},
    Synonym{"maximum", "max"},
    Synonym{"redop", "op"},
    Synonym{"red_op", "op"},
    Synonym{"reduce_op", "op"},
    Synonym{"operation", "op"},
    // buffers
    Synonym{"sendbuff", "send_buffer"},
    Synonym{"sendbuff", "input"},
    Synonym{"sendbuff", "buffer"},
    Synonym{"sendbuf", "send_buffer"},
    Synonym{"sendbuf", "input"},
    Synonym{"sendbuf", "buffer"},
    Synonym{"recvbuff", "recv_buffer"},
    Synonym{"recvbuff", "output"},
    Synonym{"recvbuff", "buffer"},
    Synonym{"recvbuf", "recv_buffer"},
    Synonym{"recvbuf", "output"},
    Synonym{"recvbuf", "buffer"},
    Synonym{"send", "send_buffer"},
    Synonym{"recv", "recv_buffer"},
    Synonym{"send_buffer", "input"},
    Synonym{"recv_buffer", "output"},
    Synonym{"input", "send_buffer"},
    Synonym{"output", "recv_buffer"},
    Synonym{"src", "send_buffer"},
    Synonym{"dst", "recv_buffer"},
    Synonym{"input_tensor", "input"},
    Synonym{"output_tensor", "output"},
    Synonym{"input", "src"},
    Synonym{"output", "dst"},
    Synonym{"out", "dst"},
    Synonym{"in", "src"},
    Synonym{"inputs", "srcs"},
    Synonym{"sources", "srcs"},
    Synonym{"source", "src"},
    Synonym{"from", "src"},
    Synonym{"dest", "dst"},
    Synonym{"to", "dst"},
    Synonym{"destination", "dst"},
    Synonym{"target", "dst"},
    Synonym{"tensor", "buffer"},
    Synonym{"buff", "buffer"},
    Synonym{"buf", "buffer"},
    Synonym{"ptr", "buffer"},
    Synonym{"dev_ptr", "buffer"},
    Synonym{"memory", "buffer"},
    Synonym{"kind", "memory"},
    Synonym{"location", "memory"},
    Synonym{"space", "memory"},
    Synonym{"init", "contents"},
    Synonym{"fill", "contents"},
    Synonym{"gpu", "device"},
    Synonym{"cuda", "device"},
    Synonym{"hbm", "device"},
    Synonym{"host", "pageable", "pinned is what is page-locked"},
    Synonym{"cpu", "pageable", "pinned is what is page-locked"},
    Synonym{"pin_memory", "pinned"},
    Synonym{"page_locked", "pinned"},
    Synonym{"paged", "pageable"},
    Synonym{"kind", "src", kBuffersKind, true},
    Synonym{"direction", "src", kBuffersKind, true},
    Synonym{"lda", "transpose_a", kPacked, true},
    Synonym{"ldb", "transpose_a", kPacked, true},
    Synonym{"ldc", "transpose_a", kPacked, true},
    Synonym{"alpha", "beta", "alpha is 1", true},
    Synonym{"trans_a", "transpose_a"},
    Synonym{"transa", "transpose_a"},
    Synonym{"trans_b", "transpose_b"},
    Synonym{"transb", "transpose_b"},
    Synonym{"batch_count", "batch"},
    // other keys
    Synonym{"communicator", "comm"},
    Synonym{"communicator", "group"},
    Synonym{"comm", "group"},
    Synonym{"process_group", "group"},
    Synonym{"group", "comm"},
    Synonym{"world", "comm"},
    Synonym{"dst", "peer"},
    Synonym{"src", "peer"},
    Synonym{"async_op", "async"},
    Synonym{"handle", "work"},
    Synonym{"request", "work"},
    Synonym{"future", "work"},
    Synonym{"label", "id"},
    Synonym{"name", "id"},
    Synonym{"label", "name"},
    Synonym{"id", "name"},
    Synonym{"time", "duration"},
    Synonym{"us", "duration"},
    Synonym{"usec", "duration"},
    Synonym{"length", "duration"},
    Synonym{"seconds", "duration"},
    Synonym{"cycles", "duration"},
    Synonym{"iterations", "times"},
    Synonym{"iters", "times"},
    Synonym{"count", "times"},
    Synonym{"n", "times"},
    Synonym{"variable", "index"},
    Synonym{"var", "index"},
    Synonym{"grid", "blocks"},
    Synonym{"grid_size", "blocks"},
    Synonym{"num_blocks", "blocks"},
    Synonym{"sms", "blocks"},
    Synonym{"body", "ops"},
    Synonym{"operations", "ops"},
    Synonym{"do", "ops"},
    Synonym{"then", "ops"},
    Synonym{"else", "otherwise"},
    Synonym{"if", "condition"},
    Synonym{"cond", "condition"},
    Synonym{"streams", "stream"},
    Synonym{"semaphore", "signal"},
    Synonym{"src_rank", "src"},
    Synonym{"dst_rank", "dst"},
    // operations
    Synonym{"memcpy_peer_async", "memcpy_async"},
    Synonym{"memcpy_peer", "memcpy_async"},
    Synonym{"copy", "memcpy_async"},
    Synonym{"copy_async", "memcpy_async"},
    Synonym{"h2d", "memcpy_async"},
    Synonym{"d2h", "memcpy_async"},
    Synonym{"d2d", "memcpy_async"},
    Synonym{"p2p", "memcpy_async"},
    Synonym{"malloc_host", "host_alloc"},
    Synonym{"free_host", "host_free"},
    Synonym{"launch_host_func", "host_func"},
    Synonym{"stream_begin_capture", "graph_capture"},
    Synonym{"graph_begin", "graph_capture"},
    Synonym{"device_enable_peer_access", "enable_peer_access"},
    Synonym{"wait_event", "stream_wait_event"},
    Synonym{"record", "event_record"},
    Synonym{"record_event", "event_record"},
    Synonym{"synchronize", "device_synchronize"},
    Synonym{"thread_synchronize", "device_synchronize"},
    Synonym{"elapsed_time", "event_elapsed_time"},
    Synonym{"kernel", "spin"},
    Synonym{"launch_kernel", "spin"},
    Synonym{"launch", "spin"},
    Synonym{"compute", "spin", "a kernel; host_compute is the host's"},
    Synonym{"sleep", "host_compute"},
    Synonym{"cpu_compute", "host_compute"},
    Synonym{"gemm_ex", "gemm"},
    Synonym{"sgemm", "gemm"},
    Synonym{"hgemm", "gemm"},
    Synonym{"matmul", "gemm"},
    Synonym{"mm", "gemm"},
    Synonym{"bmm", "gemm"},
    Synonym{"linear", "gemm"},
    Synonym{"lt_matmul", "gemm"},
    Synonym{"gemm_strided_batched_ex", "gemm", "with batch"},
    Synonym{"relu", "elementwise"},
    Synonym{"pointwise", "elementwise"},
    Synonym{"softmax", "library_kernel"},
    Synonym{"layer_norm", "library_kernel"},
    Synonym{"attention", "library_kernel"},
    Synonym{"sum", "reduction"},
    Synonym{"for", "repeat"},
    Synonym{"loop", "repeat"},
    Synonym{"if", "when"},
    Synonym{"group_start", "nccl_group"},
    Synonym{"group_end", "nccl_group"},
    Synonym{"comm_init_rank", "nccl_comm_init"},
    Synonym{"comm_init_all", "nccl_comm_init"},
    Synonym{"group", "nccl_group"},
    Synonym{"item", "read_scalar"},
    Synonym{"allreduce", "all_reduce"},
    Synonym{"allgather", "all_gather"},
    Synonym{"alltoall", "all_to_all"},
    Synonym{"bcast", "broadcast"},
    Synonym{"all_gather_into_tensor", "all_gather"},
    Synonym{"reduce_scatter_tensor", "reduce_scatter"},
    Synonym{"all_to_all_single", "all_to_all"},
    Synonym{"wait", "work_wait"},
    Synonym{"is_completed", "work_is_completed"},
    Synonym{"dist_barrier", "barrier"},
    Synonym{"range", "region"},
    Synonym{"nvtx", "region"},
};
// clang-format on

/// "cudaMemcpyAsync" -> "cuda_memcpy_async", "Host-Alloc" -> "host_alloc".
std::string in_snake_case(std::string_view word) {
  std::string snake;
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if (is_upper(c) && i > 0 && !is_upper(word[i - 1]) && snake.back() != '_') snake += '_';
    snake += c == '-' || c == '.' || c == ' '
                 ? '_'
                 : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return snake;
}

/// Whose word it is does not matter: "torch_cuda_synchronize" -> "synchronize".
std::string_view without_prefix(std::string_view word) {
  constexpr std::array<std::string_view, 9> kPrefixes{
      "torch_", "distributed_", "dist_", "cuda_", "cublas_", "cu_", "nccl_", "rccl_", "mpi_"};
  for (const std::string_view prefix : kPrefixes) {
    if (word.starts_with(prefix)) word.remove_prefix(prefix.size());
  }
  return word;
}

bool may_stand(const std::vector<std::string>& known, std::string_view word) {
  return std::ranges::find(known, word) != known.end();
}

std::string meaning(std::string_view own, std::string_view note) {
  return fmt::format("did you mean '{}'?{}{}", own, note.empty() ? "" : " ", note);
}

}  // namespace

std::string meant_by(std::string_view given, const std::vector<std::string>& known) {
  constexpr std::size_t kLongest = 64;
  if (given.size() > kLongest) return {};
  const std::string snake = in_snake_case(given);
  const std::string_view bare = without_prefix(snake);
  const std::string of_nccl = fmt::format("nccl_{}", bare);
  const bool is_nccl = snake.starts_with("nccl_") || snake.starts_with("rccl_");
  for (const std::string_view word : {is_nccl ? std::string_view{of_nccl} : bare, bare}) {
    if (word != given && may_stand(known, word)) return meaning(word, {});
  }
  for (const Synonym& one : kSynonyms) {
    if ((one.foreign != snake && one.foreign != bare) || !may_stand(known, one.own)) continue;
    if (one.own == given) continue;
    return one.is_gone ? std::string{one.note} : meaning(one.own, one.note);
  }
  return {};
}

}  // namespace foretrace
