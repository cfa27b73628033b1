// A stand-in for a GPU, so that the harness's whole path runs where there is none: device memory is
// host memory, and everything queued runs, in the order of issue, when somebody synchronizes. It
// measures nothing; it shows that passes, processes, files and failures work.
//
// Environment: FAKE_GPU_CORRUPT_COPIES=1 damages every copy's last byte; FAKE_GPU_FAIL_RANK=r lets
// process r's device fail at the tenth synchronization; FAKE_GPU_NEEDS_CONNECTIONS=n: there is no
// GPU unless CUDA_DEVICE_MAX_CONNECTIONS is n at the first call.
#pragma once

#include <functional>
#include <vector>

namespace fake_gpu {

/// Queues work; it runs at the next synchronization of this process, whatever the stream. While the
/// calling thread captures a graph the work becomes the graph's.
void queue(std::function<void()> work);
/// Lets another thread run what is queued, which may have to wait for this one.
void run_in_background();
/// From now on every synchronization fails, as after an illegal memory access.
void lose_context();
/// Runs what is queued. False when the device has failed.
bool synchronize();
/// What a graph holds.
using Works = std::vector<std::function<void()>>;
bool is_capturing();
/// False when this thread captures already.
bool begin_capture();
Works* end_capture();

enum class Answer { Done, Busy, Failed };
/// As synchronize, unless another thread is at it: then Busy.
Answer try_synchronize();

bool corrupts_copies();

}  // namespace fake_gpu
