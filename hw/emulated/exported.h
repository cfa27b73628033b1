#pragma once
// A function that programs find in this library by its name.
#define FORETRACE_EXPORTED extern "C" [[gnu::visibility("default")]]
