// CUDA graphs: captured from streams, launched as one.
#include "scenarios/errors.h"
#include "sim/host_thread.h"

namespace foretrace::sim {

void HostThread::run(const HostFunc&) { throw UsageError{"host_func is not simulated yet"}; }
void HostThread::run(const Fault&) { throw UsageError{"fault is not simulated yet"}; }
void HostThread::run(const GraphCapture&) { throw UsageError{"graphs are not simulated yet"}; }
void HostThread::run(const GraphLaunch&) { throw UsageError{"graphs are not simulated yet"}; }

}  // namespace foretrace::sim
