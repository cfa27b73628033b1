// What can only be seen of a whole Program: events that nothing records, sends without a receive,
// operations on the wrong device. What cannot be known before running is a warning.
#pragma once

#include <string>

#include "scenarios/base/text/yaml_reader.h"
#include "scenarios/check/happens_before.h"
#include "scenarios/program/program.h"

namespace foretrace {

/// Takes each event's device from the streams that record it, and fills in who arrives at each
/// barrier.
void complete_program(Program& program, Problems& problems);

/// As far as checks walk what threads do, in operations: what lies beyond is not looked at.
inline constexpr std::uint64_t kMostWalked = 400'000;         ///< of one thread of one process
inline constexpr std::uint64_t kMostWalkedOfAll = 4'000'000;  ///< of all of them

/// Adds errors and warnings about `program`, which was read without an error.
void check_program(const Program& program, Problems& problems);

/// Warnings about NCCL operations that wait for each other in vain. Part of check_program.
void check_nccl_order(const Program& program, Problems& problems);

/// The same where that order does not tell: graphs, several threads, other streams behind
/// free_async. Errors are what holds however fast each thread is. Part of check_program.
void check_lifetimes_in_order(const Program& program, Problems& problems);

/// "line 12", as told beside `other`: "line 12, column 40" where both are in one line.
std::string place_of(const Op& op, const Op& other);

/// Errors and warnings about ncclCommRegister: what is registered where it cannot be used, freed or
/// given back wrongly. Part of check_program.
void check_registrations(const Program& program, Problems& problems);

/// Errors about buffers that the program allocates and frees: used before or after, allocated or
/// freed twice, as far as one host thread's order tells. Part of check_program.
void check_lifetimes(const Program& program, Problems& problems);

/// Errors about host buffers that host_register pins twice in a pass. Part of check_program.
void check_pinned(const Program& program, Problems& problems);

/// Errors about what CUDA and NCCL refuse of a graph's capture. Part of check_program.
void check_captures(const Program& program, Problems& problems);

/// Errors about host threads and streams that never come to their end, in whatever order threads
/// come along; warnings where another one was found to end; a note where `order` was cut.
/// `order` is the likely one. Part of check_program.
void check_hangs(const Program& program, const HappensBefore& order, Problems& problems);

/// Warnings about accesses to one buffer that nothing orders, not even the likely `order`. Part of
/// check_program.
void check_races(const Program& program, const HappensBefore& order, Problems& problems);

/// Warnings about regions that wait for none of the work that they issue, or issue behind their
/// last wait. Part of check_program.
void check_regions(const Program& program, const HappensBefore& order, Problems& problems);

/// A region that is meant to time issuing: it says so, or its name does.
bool is_of_issuing(const Region& region);

/// Warnings about products whose layout gets a slow kernel: for `foretrace check` alone, since the
/// prediction knows it.
Diagnostics slow_layouts(const Program& program);

}  // namespace foretrace
