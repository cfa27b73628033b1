// What several report commands share: --format, --output, and percentages on the command line.
#pragma once

#include <filesystem>
#include <string>

namespace CLI {
class App;
}

namespace foretrace {

enum class OutputFormat { Text, Json, Csv };

struct OutputOptions {
  OutputFormat format = OutputFormat::Text;
  std::filesystem::path file;  ///< empty: stdout
};

/// Adds --format text|json|csv and -o/--output FILE.
void add_output_options(CLI::App& app, OutputOptions& options);

/// To options.file, whole or not at all, or to stdout.
void emit(const OutputOptions& options, const std::string& text);

/// "10%" or "10 %" is 0.1. Throws UsageError naming `flag`; a bare number is an error with a hint.
double parse_percent(const std::string& text, const std::string& flag);

}  // namespace foretrace
