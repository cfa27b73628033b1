#include "hw/emulated/blas/types.h"

namespace foretrace::emulated {

std::string type_word(int type) {
  switch (type) {
    case 0:
      return "f32";
    case 1:
      return "f64";
    case 2:
      return "f16";
    case 3:
      return "i8";
    case 4:
      return "c64";
    case 5:
      return "c128";
    case 8:
      return "u8";
    case 10:
      return "i32";
    case 14:
      return "bf16";
    case 24:
      return "i64";
    case 28:
      return "f8e4m3";
    case 29:
      return "f8e5m2";
    case 30:
      return "f8e8m0";
    case 33:
      return "f4e2m1";
    default:
      return "type " + std::to_string(type);
  }
}

std::string compute_word(int type) {
  switch (type) {
    case 64:
    case 65:
      return "f16";
    case 68:
    case 69:
      return "f32";
    case 70:
    case 71:
      return "f64";
    case 72:
    case 73:
      return "i32";
    case 74:
      return "f32 by f16";
    case 75:
      return "f32 by bf16";
    case 77:
      return "tf32";
    default:
      return "compute " + std::to_string(type);
  }
}

std::string epilogue_word(int epilogue) {
  constexpr struct {
    int bit;
    const char* word;
  } kBits[] = {{2, "relu"}, {32, "gelu"},  {8, "drelu"},     {64, "dgelu"},   {128, "aux"},
               {4, "bias"}, {16, "bgrad"}, {256, "bgrad_a"}, {512, "bgrad_b"}};
  std::string words;
  for (const auto& [bit, word] : kBits)
    if (epilogue & bit) words += (words.empty() ? "" : "_") + std::string(word);
  return words.empty() ? "none" : words;
}

}  // namespace foretrace::emulated
