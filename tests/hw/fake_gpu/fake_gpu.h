// A stand-in for a GPU, so that the harness's whole path runs where there is none: device memory is
// host memory, and everything queued runs, in the order of issue, when somebody synchronizes. It
// measures nothing; it shows that passes, processes, files and failures work.
//
// Environment: FAKE_GPU_CORRUPT_COPIES=1 damages every copy's last byte; FAKE_GPU_FAIL_RANK=r lets
// process r's device fail at the tenth synchronization.
#pragma once

#include <functional>

namespace fake_gpu {

/// Queues work; it runs at the next synchronization of this process, whatever the stream.
void queue(std::function<void()> work);
/// Runs what is queued. False when the device has failed.
bool synchronize();
/// As synchronize, unless another thread is at it: then false.
bool try_synchronize();

bool corrupts_copies();

}  // namespace fake_gpu
