#pragma once
// cuDNN's backend descriptors: bags of attributes by number. Source of all numbers: cuDNN's
// documentation of its backend API, version 9.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace foretrace::emulated {

struct Attribute {
  int type = 0;  // cudnnBackendAttributeType_t
  int64_t count = 0;
  std::vector<char> bytes;
};

struct Descriptor {
  int type = 0;  // cudnnBackendDescriptorType_t
  std::map<int, Attribute> attributes;
  const Descriptor* heuristics = nullptr;  // that made this configuration of an engine
  std::string operations;                  // of a plan: JSON, once it was executed
};

enum DescriptorType : int {
  kEngine = 2,
  kEngineConfiguration = 3,
  kHeuristics = 4,
  kPlan = 5,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
};

// Values of one attribute; empty if it was not set.
std::vector<const Descriptor*> descriptors(const Descriptor& of, int attribute);
std::vector<int64_t> integers(const Descriptor& of, int attribute);
// An enumeration or a boolean; `otherwise` if it was not set.
int word(const Descriptor& of, int attribute, int otherwise);

// The graph that a plan does; null if it has none.
const Descriptor* graph_of(const Descriptor& plan);
std::vector<const Descriptor*> operations_of(const Descriptor& graph);
// The operations of a plan's graph as an array of JSON:
// [{"op":"conv_fwd","x":{"d":"f16","s":[..],"st":[..]},...}].
std::string operations_json(const Descriptor& plan);

// cudnnDataType_t: "f32", "bf16", ...
std::string dnn_type_word(int type);

}  // namespace foretrace::emulated
