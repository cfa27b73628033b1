// foretrace-hw: measures scenarios on real GPUs. The commands live beside what they drive; this
// file lists them, and is the one place that ends a parallel run.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#include "hw/cli/calibrate_command.h"
#include "hw/cli/doctor_command.h"
#include "hw/cli/host_command.h"
#include "hw/cli/measure_command.h"
#include "hw/cli/products_command.h"
#include "scenarios/base/command_line/command.h"

namespace {

bool mpi_runs() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

/// Ends every process of the run, from any thread, without running destructors: other threads may
/// hang in calls that never return.
void end_run(int exit_code) {
  std::fflush(nullptr);
  if (mpi_runs()) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  const int exit_code = foretrace::run_command_line(
      argc, argv, "Measures foretrace scenarios on this machine's GPUs.", FORETRACE_VERSION,
      {[](CLI::App& app, int& code) { foretrace::hw::add_measure_command(app, code, end_run); },
       [](CLI::App& app, int& code) { foretrace::hw::add_calibrate_command(app, code, end_run); },
       foretrace::hw::add_doctor_command, foretrace::hw::add_host_command,
       foretrace::hw::add_products_command});
  // MPI still runs when this process failed alone: the others must not wait for it.
  if (mpi_runs()) end_run(exit_code);
  return exit_code;
}
