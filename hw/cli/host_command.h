// foretrace-hw host: the host as a machine of its own, measured with a GPU or without.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>

namespace foretrace::hw {

void add_host_command(CLI::App& app, int& exit_code);

/// Measures this host for about `seconds` and writes its file. Throws IoError, CudaError.
void write_host_file(const std::filesystem::path& file, double seconds);

}  // namespace foretrace::hw
