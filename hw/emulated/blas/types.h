#pragma once
// cuBLAS' enumerations as words of the record. Source: the cuBLAS documentation, cudaDataType_t and
// cublasComputeType_t.
#include <string>

namespace foretrace::emulated {

// cudaDataType_t: "bf16", "f32", ...; "type N" where it is none of ours.
std::string type_word(int cuda_data_type);
// cublasComputeType_t: "f32", "tf32", ...
std::string compute_word(int compute_type);
// cublasLtEpilogue_t: "none", "bias", "gelu_aux_bias", ...
std::string epilogue_word(int epilogue);

}  // namespace foretrace::emulated
