// Asks NCCL itself: the price of every collective (ncclGroupSimulateEnd, which launches nothing)
// and, with --run, the real operation, so that NCCL's TUNING lines say algorithm, protocol and
// channels. One process drives all ranks. nccl_oracle.sh runs it and puts prices and choices into
// one table.
//
//   nccl_oracle [--run] [--half-steps] [--largest BYTES] RANKS...
//
// Prints nccl_version,env,ranks,op,type,bytes,estimated_us; bytes is NCCL's nBytes (all_gather: the
// gathered vector; reduce_scatter: the input); estimated_us is empty where NCCL refuses.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/nccl_check.h"

extern char** environ;  // NOLINT: POSIX

namespace {

using foretrace::hw::cuda_check;
using foretrace::hw::nccl_check;

struct Arguments {
  bool run = false;
  bool half_steps = false;
  std::size_t largest = std::size_t{4} << 30;
  std::vector<int> ranks;
};

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0) {
    throw std::invalid_argument{fmt::format("'{}' is not a positive number", text)};
  }
  return value;
}

Arguments parse(const std::vector<std::string_view>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--run") {
      arguments.run = true;
    } else if (words[i] == "--half-steps") {
      arguments.half_steps = true;
    } else if (words[i] == "--largest" && i + 1 < words.size()) {
      arguments.largest = number(words[++i]);
    } else {
      arguments.ranks.push_back(static_cast<int>(number(words[i])));
    }
  }
  if (arguments.ranks.empty()) throw std::invalid_argument{"give at least one number of ranks"};
  return arguments;
}

/// The NCCL_* variables that can change a choice, sorted, as a CSV cell:
/// "NCCL_NVLS_ENABLE=0 NCCL_PROTO=LL".
std::string settings() {
  std::vector<std::string> set;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const bool output = text.starts_with("NCCL_DEBUG") || text.find("_DUMP_") != text.npos;
    if (text.starts_with("NCCL_") && !output) set.emplace_back(text);
  }
  std::ranges::sort(set);
  const std::string all = fmt::format("{}", fmt::join(set, " "));
  return all.find(',') == all.npos ? all : fmt::format("\"{}\"", all);
}

/// All ranks of a communicator, one per device from 0 on, with a buffer and a stream each.
class Ranks {
 public:
  Ranks(int count, std::size_t buffer_bytes) : devices_(static_cast<std::size_t>(count)) {
    std::vector<ncclComm_t> comms(devices_.size());
    nccl_check(ncclCommInitAll(comms.data(), count, nullptr));
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      devices_[i].comm = comms[i];
      cuda_check(cudaSetDevice(static_cast<int>(i)));
      cuda_check(cudaStreamCreateWithFlags(&devices_[i].stream, cudaStreamNonBlocking));
      cuda_check(cudaMalloc(&devices_[i].buffer, buffer_bytes));
      cuda_check(cudaMemset(devices_[i].buffer, 0, buffer_bytes));
    }
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks() {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      foretrace::hw::cuda_ignore(cudaSetDevice(static_cast<int>(i)));
      foretrace::hw::cuda_ignore(cudaFree(devices_[i].buffer));
      foretrace::hw::cuda_ignore(cudaStreamDestroy(devices_[i].stream));
      static_cast<void>(ncclCommDestroy(devices_[i].comm));
    }
  }

  struct Device {
    ncclComm_t comm{};
    cudaStream_t stream{};
    std::byte* buffer{};
  };
  std::size_t count() const { return devices_.size(); }
  const std::vector<Device>& devices() const { return devices_; }

  void synchronize() const {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      cuda_check(cudaSetDevice(static_cast<int>(i)));
      cuda_check(cudaStreamSynchronize(devices_[i].stream));
    }
  }

 private:
  std::vector<Device> devices_;
};

struct Operation {
  std::string_view name;
  bool shares;  ///< nBytes is the sum over ranks of what the call's count names
  /// In place; `count` elements of the call.
  std::function<ncclResult_t(const Ranks::Device&, std::size_t rank, std::size_t count,
                             ncclDataType_t type)>
      call;
};

constexpr std::size_t kElement = 4;  // float32

const std::vector<Operation>& operations() {
  using Device = Ranks::Device;
  static const std::vector<Operation> kAll{
      {"all_reduce", false,
       [](const Device& d, std::size_t, std::size_t count, ncclDataType_t type) {
         return ncclAllReduce(d.buffer, d.buffer, count, type, ncclSum, d.comm, d.stream);
       }},
      {"all_gather", true,
       [](const Device& d, std::size_t rank, std::size_t count, ncclDataType_t type) {
         return ncclAllGather(d.buffer + rank * count * kElement, d.buffer, count, type, d.comm,
                              d.stream);
       }},
      {"reduce_scatter", true,
       [](const Device& d, std::size_t rank, std::size_t count, ncclDataType_t type) {
         return ncclReduceScatter(d.buffer, d.buffer + rank * count * kElement, count, type,
                                  ncclSum, d.comm, d.stream);
       }},
      {"broadcast", false,
       [](const Device& d, std::size_t, std::size_t count, ncclDataType_t type) {
         return ncclBroadcast(d.buffer, d.buffer, count, type, 0, d.comm, d.stream);
       }},
      {"reduce", false,
       [](const Device& d, std::size_t, std::size_t count, ncclDataType_t type) {
         return ncclReduce(d.buffer, d.buffer, count, type, ncclSum, 0, d.comm, d.stream);
       }},
  };
  return kAll;
}

void call_on_all(const Operation& operation, const Ranks& ranks, std::size_t count) {
  for (std::size_t i = 0; i < ranks.count(); ++i) {
    nccl_check(operation.call(ranks.devices()[i], i, count, ncclFloat32));
  }
}

/// After a simulated group NCCL (2.27 to 2.30) still holds the group's operations: they would count
/// in the next price and be launched with the next group. A group that fails makes it drop them.
void forget_simulated(const Operation& operation, const Ranks& ranks) {
  nccl_check(ncclGroupStart());
  call_on_all(operation, ranks, 1);
  static_cast<void>(operation.call(ranks.devices()[0], 0, 1, ncclNumTypes));
  static_cast<void>(ncclGroupEnd());
}

/// NCCL's price in microseconds, or nothing where it refuses the operation.
std::optional<float> price(const Operation& operation, const Ranks& ranks, std::size_t count) {
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  nccl_check(ncclGroupStart());
  call_on_all(operation, ranks, count);
  if (ncclGroupSimulateEnd(&info) != ncclSuccess) return {};
  forget_simulated(operation, ranks);
  return info.estimatedTime;
}

void run(const Operation& operation, const Ranks& ranks, std::size_t count) {
  nccl_check(ncclGroupStart());
  call_on_all(operation, ranks, count);
  if (ncclGroupEnd() == ncclSuccess) ranks.synchronize();
}

std::vector<std::size_t> sizes(const Arguments& arguments) {
  std::vector<std::size_t> all;
  for (std::size_t bytes = 8; bytes <= arguments.largest; bytes *= 2) {
    all.push_back(bytes);
    const std::size_t between = bytes / 2 * 3;
    if (arguments.half_steps && between <= arguments.largest) all.push_back(between);
  }
  return all;
}

/// Calls `visit(operation, bytes, count)` for every operation and size that `ranks` can do.
template <class Visit>
void for_each_point(const Arguments& arguments, std::size_t ranks, const Visit& visit) {
  for (const Operation& operation : operations()) {
    const std::size_t unit = kElement * (operation.shares ? ranks : 1);
    for (const std::size_t bytes : sizes(arguments)) {
      if (bytes % unit == 0) visit(operation, bytes, bytes / unit);
    }
  }
}

void ask(const Arguments& arguments, int rank_count, int version, const std::string& env) {
  const Ranks ranks{rank_count, arguments.largest};
  // The real operations first: nothing simulated can disturb them.
  if (arguments.run) {
    for_each_point(
        arguments, ranks.count(),
        [&](const Operation& op, std::size_t, std::size_t count) { run(op, ranks, count); });
  }
  std::optional<std::optional<float>> first;
  for_each_point(arguments, ranks.count(),
                 [&](const Operation& op, std::size_t bytes, std::size_t count) {
                   const std::optional<float> time = price(op, ranks, count);
                   if (!first) first = time;
                   fmt::print("{}.{}.{},{},{},{},float32,{},{}\n", version / 10000,
                              version / 100 % 100, version % 100, env, rank_count, op.name, bytes,
                              time ? fmt::format("{:.9g}", *time) : "");
                 });
  if (price(operations()[0], ranks, sizes(arguments)[0] / kElement) != first) {
    throw std::runtime_error{"the first price changed during the run: the table cannot be right"};
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Arguments arguments = parse({argv + 1, argv + argc});
  int version = 0;
  nccl_check(ncclGetVersion(&version));
  const std::string env = settings();
  fmt::print("nccl_version,env,ranks,op,type,bytes,estimated_us\n");
  for (const int ranks : arguments.ranks) ask(arguments, ranks, version, env);
  return 0;
} catch (const std::invalid_argument& error) {
  fmt::print(stderr, "nccl_oracle: {}\n", error.what());
  return 2;
} catch (const std::exception& error) {
  fmt::print(stderr, "nccl_oracle: {}\n", error.what());
  return 4;
}
