#pragma once
// What a plan of cuDNN asks for as workspace.
#include <cstdint>

namespace foretrace::emulated {

struct Descriptor;

// Bytes, of a plan whose graph has a convolution in two dimensions: those of the same layer in
// FORETRACE_CONVOLUTIONS (hw/emulated/devices/convolutions.csv), by its batch. 0 of layers that are
// not there, and of all other plans.
int64_t workspace_of(const Descriptor& plan);

}  // namespace foretrace::emulated
