// What the host does around a GPU, taken apart: host_states [EXPERIMENT ...] > states.csv
#include <cuda_runtime_api.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "lab.h"

int main(int argc, char** argv) {
  const std::vector<std::pair<std::string, void (*)()>> all{
      {"copies", pageable_copies}, {"touch", first_touch},      {"allocations", allocations},
      {"storms", storms},          {"products", tiny_products}, {"locks", locks}};
  const std::vector<std::string> wanted{argv + 1, argv + argc};
  for (const std::string& one : wanted) {
    bool is_known = false;
    for (const auto& [name, run] : all) is_known = is_known || name == one;
    if (is_known) continue;
    std::fprintf(stderr,
                 "unknown experiment '%s': copies, touch, allocations, storms, products or locks\n",
                 one.c_str());
    return 2;
  }
  LAB_CHECK(cudaSetDevice(0));
  LAB_CHECK(cudaFree(nullptr));
  std::printf("experiment,variant,size,threads,median_us,p10_us,p90_us,samples\n");
  for (const auto& [name, run] : all) {
    bool is_wanted = wanted.empty();
    for (const std::string& one : wanted) is_wanted = is_wanted || one == name;
    if (!is_wanted) continue;
    const double begin = lab::now();
    run();
    std::fprintf(stderr, "%s: %.1f s\n", name.c_str(), lab::now() - begin);
  }
  return 0;
}
