// Where another algorithm, protocol or number of channels is faster than NCCL's own choice, as far
// as the machine's times say: what a tuner plug-in or NCCL_ALGO, NCCL_PROTO and NCCL_*_NCHANNELS
// could make of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "models/nccl/time/collective_time.h"

namespace foretrace::nccl {

struct TunerQuestion {
  std::vector<CollectiveKind> kinds;  ///< that NCCL prices
  std::uint64_t first_bytes = 1 << 10;
  std::uint64_t last_bytes = 1 << 30;  ///< NCCL's nBytes
  std::uint32_t ranks = 2;
  std::uint32_t nodes = 1;
  std::map<std::string, std::string> environment;
  bool by_plugin = false;  ///< which cannot take more channels than the communicator has
};

/// How much faster the other way is: 1.2 takes 1/1.2 of the time.
struct Gain {
  double own_us = 0;
  double other_us = 0;
  double factor = 1;
  double low = 1;  ///< its band (models/trust/): errors that both ways share cancel
  double high = 1;
};

/// Sizes of one operation that one choice holds for.
struct TunedRange {
  CollectiveKind kind{};
  std::uint64_t first_bytes = 0;
  std::uint64_t last_bytes = 0;  ///< included
  Algorithm algorithm{};
  Protocol protocol{};
  std::uint32_t channels = 1;                   ///< that a plug-in asks for
  std::map<std::string, std::string> settings;  ///< that make NCCL take it; none: it does
  Gain gain;                                    ///< the least within the range
};

struct Tuned {
  TunerQuestion question;
  std::vector<TunedRange> ranges;  ///< by operation and size, without holes: also NCCL's own
  std::size_t compared = 0;        ///< steps of a quarter of a doubling, over all operations
  std::size_t unsure = 0;          ///< of these: faster, but its band includes no gain
  std::size_t without_times = 0;   ///< of these: the machine has no times for NCCL's own choice
  std::size_t others_untimed = 0;  ///< other ways that could be taken and have no times
};

/// Throws UsageError.
Tuned tune_machine(const Machine& machine, const TunerQuestion& question);

/// For NCCL's example plug-in (ext-tuner/example of its source). Where no row fits that plug-in
/// asks for one channel, so NCCL's own choices are rows, too.
std::string tuner_file(const Tuned& tuned, const std::string& machine);

std::string tuned_text(const Tuned& tuned, const std::string& machine);
std::string tuned_json(const Tuned& tuned, const std::string& machine);
std::string tuned_csv(const Tuned& tuned);

}  // namespace foretrace::nccl
