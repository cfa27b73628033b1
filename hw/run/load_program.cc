#include "hw/run/load_program.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "hw/guard/together.h"
#include "scenarios/text/text_file.h"

namespace foretrace::hw {

ParameterValues parse_assignments(const std::vector<std::string>& assignments) {
  ParameterValues values;
  for (const std::string& text : assignments) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError{fmt::format("--set {}: write --set name=value", text)};
    }
    values[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return values;
}

Program load_program(const Processes& world, const std::string& file,
                     const ParameterValues& parameters) {
  std::string text;
  Program program;
  at_root(world, [&] {
    program = load_scenario(file, parameters);
    text = read_text_file(file);
  });
  text = world.broadcast(text);
  if (world.rank() != 0) {
    auto read = read_scenario(text, file, parameters);
    FORETRACE_CHECK(read.has_value(), "what rank 0 could read, every rank can");
    program = std::move(read->program);
  }
  return program;
}

void check_devices(const Program& program, const Processes& processes) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    throw CannotHereError{fmt::format("no GPU can be used here: {} (foretrace-hw doctor says more)",
                                      cudaGetErrorString(error))};
  }
  const auto devices = static_cast<int>(program.devices);
  const int needed = processes.local_count() * devices;
  if (needed > count) {
    throw CannotHereError{fmt::format("{} needs {} GPU{} on this host, it has {}", program.file,
                                      needed, needed == 1 ? "" : "s", count)};
  }
  for (int d = 0; d < devices; ++d) {
    std::uint64_t bytes = 0;
    for (const foretrace::Buffer& buffer : program.buffers) {
      if (buffer.memory == MemoryKind::Device && static_cast<int>(buffer.device) == d) {
        bytes += buffer.size.count;
      }
    }
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, processes.local_rank() * devices + d) != cudaSuccess) {
      continue;
    }
    if (bytes > properties.totalGlobalMem) {
      throw CannotHereError{fmt::format("{}: the buffers of device {} need {} B, the GPU has {} B",
                                        program.file, d, bytes, properties.totalGlobalMem)};
    }
  }
  for (const Barrier& barrier : program.barriers) {
    if (!processes.one_host() && !barrier.parties.empty()) {
      throw CannotHereError{
          fmt::format("{}: a host_barrier between hosts is not possible yet", program.file)};
    }
  }
}

}  // namespace foretrace::hw
