// Most of the shipped machines are based on the same few: their files are read as machines once.
#pragma once

#include <functional>
#include <string>

#include "models/machine/machine.h"

namespace foretrace {

/// What `read` made of this text of the file at this depth of bases, or makes of it now. Any number
/// of threads may ask. What `read` throws passes through, and nothing is kept.
Machine read_once(const std::string& file, int depth, const std::string& text,
                  const std::function<Machine()>& read);

}  // namespace foretrace
