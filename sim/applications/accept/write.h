// The verdict for people, for programs and for a pipeline's page of tests.
#pragma once

#include <string>

#include "sim/applications/accept/accept.h"

namespace foretrace {

std::string accept_text(const Acceptance& acceptance);
std::string accept_json(const Acceptance& acceptance);
std::string accept_csv(const Acceptance& acceptance);
/// JUnit XML: a suite for each part, a case for each value; slow ones of a part that is not
/// accepted fail.
std::string accept_junit(const Acceptance& acceptance);

}  // namespace foretrace
