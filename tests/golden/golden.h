// The golden of a shipped scenario: what its prediction was when the golden was written.
#pragma once

#include <filesystem>
#include <string>

#include "tests/cli/shell.h"
#include "tests/golden/recorded.h"

namespace foretrace::test {

std::filesystem::path goldens();

/// scenarios/streams/x.yaml: tests/golden/streams/x.txt
std::filesystem::path golden_of(const Shipped& scenario);

/// The predicted timeline in `run`, a directory that `foretrace simulate` wrote.
Recorded recorded_in(const std::filesystem::path& run);

/// The golden becomes `now`. Throws what an output stream does.
void rewrite_golden(const Shipped& scenario, const Recorded& now);

/// What differs from its golden, with the golden's name; empty when nothing does.
std::string difference_from_golden(const Shipped& scenario, const Recorded& now);

}  // namespace foretrace::test
