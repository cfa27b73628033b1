// Traces of PyTorch's profiler: Kineto's JSON, plain or gzipped. Read as a stream of tokens: what
// is kept is an event's few numbers.
#pragma once

#include <filesystem>
#include <string_view>

#include "reports/capture/capture.h"

namespace foretrace::capture {

/// One process. Throws UsageError naming the file: not readable, no JSON, cut off, no trace,
/// numbers that are no times, more than kMostEvents, or more than 2 GiB unpacked.
Process read_kineto(const std::filesystem::path& file, Names& names);
/// The same of a file's bytes; `name` is what messages call it.
Process parse_kineto(std::string_view bytes, const std::string& name, Names& names);

}  // namespace foretrace::capture
