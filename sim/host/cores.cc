// Operators on the CPU and reads of files. The cores, the memory and the storage of a node are
// links of the engine: whatever uses them at the same time shares them, max-min fair.
#include <cmath>

#include "models/cost/host_work.h"
#include "sim/host/thread.h"

namespace foretrace::sim {

void HostThread::flow(PathId path, double amount) {
  ++pending_wakes_;
  engine_.start_flow(path, {static_cast<std::uint64_t>(std::llround(amount))}, *this, kWake);
}

void HostThread::use_node(Priced alone, Duration fixed, const char* what) {
  if (pending_wakes_ == 0) {  // nothing to do
    take(alone);
    return;
  }
  waiting_detail_ = alone.detail;
  block({}, fixed, what);
}

void HostThread::run(const HostParallel& op) {
  const cost::ParallelWork work{.flops = static_cast<double>(op.flops.eval(variables_)),
                                .bytes = op.bytes.eval(variables_),
                                .threads = op.threads};
  if (work.flops > 0) flow(world_.cores(process_, op.threads), work.flops);
  if (work.bytes.count > 0) {
    flow(world_.host_memory(process_, op.threads), static_cast<double>(work.bytes.count));
  }
  Reading read{machine_};
  use_node(price([&](Reading& all) { return cost::parallel_time(all, work); }),
           cost::until_all_begin(read, op.threads) + cost::time_beside_each_other(read, work),
           "the host's cores");
}

void HostThread::run(const ReadFile& op) {
  const Bytes size = op.size.eval(variables_);
  wrote(op.dst.resolve(variables_), size);
  touches(op.dst, size);
  if (size.count > 0) flow(world_.storage(process_), static_cast<double>(size.count));
  Reading read{machine_};
  use_node(price([&](Reading& all) { return cost::read_file_time(all, size); }),
           read.time(Param::StorageLatency), "the storage");
}

}  // namespace foretrace::sim
