// Which part of a sweep is this process': all of it, or, started by mpirun or Slurm's srun, every
// n-th point. The processes meet in the file system only.
#pragma once

#include <cstddef>
#include <string>

namespace foretrace::sweep {

struct Share {
  std::size_t rank = 0;
  std::size_t size = 1;
  std::string variable = {};  ///< of the environment, that said so
  bool has(std::size_t point) const { return point % size == rank; }
};

/// From what Open MPI, MPICH or Slurm put into the environment.
Share share_of_environment();

}  // namespace foretrace::sweep
