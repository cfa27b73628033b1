// Reads scenario text in tests, and prints what was wrong with it when that was not expected.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/read/scenario.h"

namespace foretrace::reading_test {

/// A scenario of one process with two devices, a stream s, events e and e2(0..1), device buffers
/// x and y of 1 MiB, pinned buffer host of 1 MiB, pageable buffer page of 1 MiB, and `ops` as its
/// only thread: one operation per line, without the leading "- ". The first one is in line 18.
std::string scenario_with(std::string_view ops);
inline constexpr int kFirstOpLine = 18;
inline constexpr int kOpColumn = 7;  ///< of the operation's name

/// Fails the test when `text` has errors; warnings are fine.
Program read(const std::string& text, const ParameterValues& parameters = {});

/// Everything wrong with `text`, notes left out, one per line: "12:5 error: unknown key 'strem' ...
/// | the hint".
std::string problems_of(const std::string& text, const ParameterValues& parameters = {});

}  // namespace foretrace::reading_test
