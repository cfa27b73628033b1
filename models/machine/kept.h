// Machines that are read once, for who asks again and again.
#pragma once

#include <string>

namespace foretrace {

/// Reads it now: from here on load_machine() of this name has what was read, in this process and
/// its children. Only machines of the directory are kept, the first 32 of them. Throws UsageError
/// for a broken file.
void keep_machine(const std::string& name);

}  // namespace foretrace
