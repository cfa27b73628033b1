// What the .cu files include and needs no CUDA, compiled as nvcc compiles it: as C++17.
#include "hw/cuda/element.h"
#include "hw/cuda/hash.h"
#include "hw/library/library_layout.h"
