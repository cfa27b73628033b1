// Memory that is not enough where nothing can be thrown.
#pragma once

namespace foretrace {

/// From now on a program that has no memory left ends with a line and exit code 4 where it would
/// abort: in functions of libraries that throw nothing, in threads, while an error is told.
/// Whatever else ends it ends it as before.
void tell_when_memory_is_not_enough();

}  // namespace foretrace
