// How fast the host of a compared table is, as far as its small sizes tell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "sim/applications/nccl_tests/compare.h"

namespace foretrace {

struct NcclTestsHost {
  double factor = 1;       ///< 1.3: as fast as the machine file's by so much, as --with host=1.3x
  std::size_t fitted = 0;  ///< rows that it was found on: every other size below 1 MiB
  std::size_t judged = 0;  ///< the other ones
  double before = 0;       ///< their median |error| without the factor
  double after = 0;        ///< and with it
};

/// One factor for all of the comparisons: a file of results is of one host. None where too few
/// sizes tell, or where runs are so large that the network decides them.
std::optional<NcclTestsHost> fit_host(const std::vector<NcclTestsComparison>& comparisons,
                                      const Machine& machine);

/// "this host is 1.3 times as fast as the machine file's ...\n"
std::string host_text(const NcclTestsHost& host, const Machine& machine);

}  // namespace foretrace
