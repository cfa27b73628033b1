// A program as others write it: it links CUDA's runtime, knows nothing of foretrace, and runs where
// there is no GPU.
#include <cstddef>
#include <cstdio>
#include <cstring>

extern "C" {
int cudaGetDeviceCount(int* n);
int cudaMalloc(void** p, size_t n);
int cudaMemcpy(void* to, const void* from, size_t n, int kind);
int cudaStreamCreate(void** stream);
int cudaMemsetAsync(void* p, int value, size_t n, void* stream);
int cudaStreamSynchronize(void* stream);
int cudaFree(void* p);
size_t foretrace_record_count();
}

int main() {
  int devices = 0;
  void *gpu = nullptr, *stream = nullptr;
  char text[16] = "", sent[16] = "through a GPU";
  if (cudaGetDeviceCount(&devices) != 0 || devices != 1) return 1;
  if (cudaMalloc(&gpu, sizeof text) != 0 || cudaStreamCreate(&stream) != 0) return 2;
  if (cudaMemcpy(gpu, sent, sizeof sent, 1) != 0 || cudaMemcpy(text, gpu, sizeof text, 2) != 0)
    return 3;
  if (std::strcmp(text, sent) != 0) return 4;
  if (cudaMemsetAsync(gpu, 0, sizeof text, stream) != 0 || cudaStreamSynchronize(stream) != 0)
    return 5;
  if (cudaMemcpy(text, gpu, sizeof text, 2) != 0 || text[0] != 0) return 6;
  if (cudaFree(gpu) != 0 || cudaFree(gpu) == 0) return 7;
  std::printf("%zu calls\n", foretrace_record_count());
  return 0;
}
