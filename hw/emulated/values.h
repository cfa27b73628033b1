#pragma once
// What the host reads from the emulated GPU. Kernels do not run, so a value is what was copied
// there, or what a rule says.
#include <cstddef>
#include <string>

namespace foretrace::emulated {

// Copies up to so many bytes carry them.
constexpr size_t kCarried = size_t{1} << 20;

// A kernel was launched with these arguments: if the next read is of what it wrote, its name
// decides.
void note_launch(const char* name, void** arguments);

// A copy that moves `bytes`. `down`: from a GPU to the host.
void carry(void* to, const void* from, size_t bytes, bool down);

// Of the last copy from a GPU of at most 8 bytes by this thread: JSON of its `host_read` record, or
// empty.
std::string last_read();

}  // namespace foretrace::emulated
