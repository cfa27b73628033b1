// Region times over repetitions and process launches, and how processes send their part to rank 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/trace/records.h"
#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

/// Adds one repetition's times: a sample to each region's row, new rows as they appear.
void add_repetition(std::vector<RegionSamples>& rows, const Program& program,
                    const std::vector<RegionTime>& times, std::uint32_t process,
                    std::uint32_t start);
/// The same regions in the traced pass.
void set_traced(std::vector<RegionSamples>& rows, const Program& program,
                const std::vector<RegionTime>& times, std::uint32_t process);
/// Adds the samples of `more` to the rows of the same region, instance and process.
void append_samples(std::vector<RegionSamples>& rows, const std::vector<RegionSamples>& more);

/// How many samples every row has at least; 0 when there is none.
std::size_t repetitions_in(const std::vector<RegionSamples>& rows);
/// One more than the highest number in `starts`; 0 when there is none.
std::uint32_t next_start(const std::vector<RegionSamples>& rows);

/// Lanes, spans, details and regions as bytes for another process of the same build.
std::string to_bytes(const Timeline& part);
Timeline from_bytes(const std::string& bytes);

}  // namespace foretrace::hw
