#pragma once
// A product, whichever function asked for it, as the record has it.
#include <cstddef>
#include <cstdint>
#include <string>

namespace foretrace::emulated {

struct Product {
  const char* function = "";
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool transpose_a = false, transpose_b = false;
  std::string a = {}, b = {}, c = {}, d = {}, compute = {}, scale = {};  // words of types
  std::string epilogue = "none";
  bool accumulates = false;  // beta is not 0
  int64_t lda = 0, ldb = 0, ldd = 0;
  size_t workspace = 0;  // bytes offered
  const void *pa = nullptr, *pb = nullptr, *pc = nullptr, *pd = nullptr;
  std::string more = {};  // keys of JSON
};

void record_product(const Product& product, void* stream);

// The value of a scalar argument of cuBLAS: false for 0. `compute` 16F has halves, 64F doubles,
// else floats; pointers to the GPU count as 0.
bool nonzero(const void* scalar, const std::string& type);

}  // namespace foretrace::emulated
