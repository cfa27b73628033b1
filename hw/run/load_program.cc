#include "hw/run/load_program.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "hw/guard/together.h"
#include "scenarios/base/text/text_file.h"

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

namespace {

/// The scenario's nodes are the hosts that the launcher chose. Throws CannotHereError.
void check_placement(const Program& program, const Processes& processes) {
  const auto nodes = static_cast<int>(program.nodes);
  if (nodes > 1 && processes.hosts() != nodes) {
    throw CannotHereError{fmt::format("{} is for {} nodes, its {} processes are on {}",
                                      program.file, nodes, processes.count(), processes.hosts())};
  }
  for (int rank = 0; nodes > 1 && rank < processes.count(); ++rank) {
    const int node = rank / (processes.count() / nodes);
    if (processes.host_of(rank) == node) continue;
    throw CannotHereError{fmt::format(
        "{}: process {} is on host {}, the scenario has it on node {}\n  hint: whole nodes one "
        "after the other: srun --distribution=block, mpirun --map-by ppr:{}:node",
        program.file, rank, processes.host_of(rank), node, processes.count() / nodes)};
  }
  if (!processes.one_host() && !threads_may_call_mpi()) {
    throw CannotHereError{
        "this MPI does not let several threads call it (MPI_THREAD_MULTIPLE), which a measurement "
        "on several hosts needs"};
  }
}

}  // namespace

Program load_program(const Processes& world, const std::string& file,
                     const ParameterValues& parameters) {
  std::string sent;
  Program program;
  at_root(world, [&] {
    IncludedTexts parts;
    program = load_scenario(file, parameters, &parts);
    sent = nlohmann::json{{"text", read_text_file(file)}, {"parts", parts}}.dump();
  });
  sent = world.broadcast(sent);
  if (world.rank() != 0) {
    const auto files = nlohmann::json::parse(sent);
    auto parts = files.at("parts").get<IncludedTexts>();
    auto read = read_scenario(files.at("text").get<std::string>(), file, parameters, &parts);
    FORETRACE_CHECK(read.has_value(), "what rank 0 could read, every rank can");
    program = std::move(read->program);
  }
  return program;
}

void check_devices(const Program& program, const Processes& processes) {
  check_placement(program, processes);
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
}

}  // namespace foretrace::hw
