// What each process knows about a run that hangs, and what all of them together say about it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hw/run/thread_state.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

/// Where one host thread was when its process's watchdog looked.
struct ThreadReport {
  std::uint32_t thread{};  ///< index into Program::threads
  ThreadState::Phase phase = ThreadState::Phase::NotStarted;
  Execution current{};
  std::vector<Execution> nccl_calls;                 ///< issued in this pass, oldest first
  bool nccl_calls_complete = true;                   ///< false: older ones were forgotten
  std::uint32_t open_group = ThreadState::kNoGroup;  ///< OpId of an nccl_group it is within
};

struct ProcessReport {
  std::uint32_t process{};
  std::vector<ThreadReport> threads;
  std::vector<std::string> busy_streams;            ///< with work that has not ended
  std::vector<Execution> waiting_host_functions{};  ///< for a signal
};

ThreadReport report_of(std::uint32_t thread, const ThreadState& state);

/// One sentence per thing that never ended: sends and receives without a partner, collectives that
/// a rank never joined, then every host thread that waits. Pure: reports in, sentences out.
std::vector<std::string> explain_hang(const Program& program,
                                      const std::vector<ProcessReport>& reports);

/// The reports travel as text: between the processes of one host in small files in the run's
/// directory, because the main threads are stuck.
std::string to_text(const ProcessReport& report);
/// Empty when the text is no report.
std::optional<ProcessReport> report_from(const std::string& text);
std::filesystem::path hang_file(const std::filesystem::path& run, std::uint32_t process);
void write_hang_report(const std::filesystem::path& file, const ProcessReport& report);
std::optional<ProcessReport> read_hang_report(const std::filesystem::path& file);

}  // namespace foretrace::hw
