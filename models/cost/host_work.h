// What the cores and the storage of a host cost: operators on the CPU, and reads of files. Pure
// functions of the machine's parameters, which the Reading notes.
#pragma once

#include <cstdint>

#include "models/machine/reading.h"

namespace foretrace::cost {

/// An operator on the CPU; `threads` is 0 for one on each core.
struct ParallelWork {
  double flops{};
  Bytes bytes;
  std::uint32_t threads = 0;
};

/// The threads that run at once: no more than there are cores.
std::uint32_t threads_at_work(Reading& read, std::uint32_t threads);

/// What `threads` get when nobody else runs, in flop/s and bytes/s. Memory serves the cores until
/// it is full: the lower one of what they ask for and what it has. Cores that are hardware threads
/// of one core share it: 16 of an H200's host compute 8.6 times what one does, half of them 6.7
/// times (foretrace-hw host).
double parallel_flops(Reading& read, std::uint32_t threads);
double parallel_bandwidth(Reading& read, std::uint32_t threads);

/// Until the last of the threads begins, which were at rest: host.parallel where there is one for
/// each core, nothing for one. Of all 24 cores of a machine the last begins 2.5 ms late, of four
/// threads about 0.1 ms (cpu_operators; cpu_filter_instead of written-1): the share of the others
/// to the power of 1.5.
Duration until_all_begin(Reading& read, std::uint32_t threads);

/// What work that computes and goes through memory takes beyond the longer of both: cores do not
/// compute all the while that they wait for memory (host.core_both).
Duration time_beside_each_other(Reading& read, const ParallelWork& work);

/// From the call to its return when nobody else uses the cores or the memory: the threads are
/// woken, then arithmetic and memory go on beside each other, and the slower one decides.
Duration parallel_time(Reading& read, const ParallelWork& work);

/// The same of a file that is read while nobody else reads.
Duration read_file_time(Reading& read, Bytes size);

}  // namespace foretrace::cost
