#include "hw/emulated/dnn/descriptor.h"

#include <algorithm>
#include <cstring>

namespace foretrace::emulated {
namespace {

enum : int {  // cudnnBackendAttributeName_t
  kHeuristicsGraph = 201,
  kConfigurationEngine = 300,
  kPlanConfiguration = 401,
  kGraphOperations = 801,
  kTensorType = 901,
  kTensorSizes = 902,
  kTensorStrides = 903,
  kTensorVirtual = 907,
  kEngineGraph = 1300,
};
constexpr int kDescriptorType = 15, kInteger64 = 3;  // cudnnBackendAttributeType_t

struct Key {
  int attribute;
  const char* word;
};
// What an operation's tensors are called in the record; others are called by their number.
constexpr Key kTensorKeys[] = {
    {703, "w"},   {704, "x"},      {705, "y"},   // convolution, forward
    {709, "w"},   {710, "dx"},     {711, "dy"},  // with respect to data
    {715, "dw"},  {716, "x"},      {717, "dy"},  // with respect to the filter
    {751, "x"},   {752, "b"},      {753, "y"},   {756, "dx"},
    {757, "dy"},  {758, "t"},                                  // pointwise
    {1520, "a"},  {1521, "b"},     {1522, "c"},                // matrix product
    {1610, "x"},  {1611, "y"},                                 // reduction
    {2002, "x"},  {2005, "scale"}, {2013, "y"},                // normalization, forward
    {2101, "x"},  {2104, "dy"},    {2109, "dx"},               // and backward
    {2800, "q"},  {2801, "k"},     {2802, "v"},  {2803, "o"},  // attention, forward
    {2851, "q"},  {2852, "k"},     {2853, "v"},  {2854, "o"},
    {2859, "dq"}, {2860, "dk"},    {2861, "dv"},  // and backward
};
constexpr Key kOperations[] = {
    {10, "conv_fwd"},      {11, "conv_wgrad"},   {12, "conv_dgrad"},
    {13, "pointwise"},     {14, "genstats"},     {19, "matmul"},
    {20, "bn_finalize"},   {22, "reduction"},    {23, "bn_bwd_weights"},
    {25, "resample_fwd"},  {26, "resample_bwd"}, {27, "concat"},
    {28, "signal"},        {29, "norm_fwd"},     {30, "norm_bwd"},
    {31, "reshape"},       {33, "rng"},          {35, "paged_cache_load"},
    {36, "quantize"},      {37, "dequantize"},   {39, "expand_band"},
    {40, "contract_band"}, {41, "sdpa_fwd"},     {42, "moe_grouped_matmul"},
    {43, "sdpa_bwd"}};

template <size_t N>
std::string word_of(const Key (&keys)[N], int number) {
  for (const auto& [attribute, word] : keys)
    if (attribute == number) return word;
  return std::to_string(number);
}

std::string list(const std::vector<int64_t>& values) {
  std::string text;
  for (const int64_t v : values) text += (text.empty() ? "" : ",") + std::to_string(v);
  return "[" + text + "]";
}

std::string tensor_json(const Descriptor& t) {
  return R"({"d":")" + dnn_type_word(word(t, kTensorType, 0)) + R"(","s":)" +
         list(integers(t, kTensorSizes)) + R"(,"st":)" + list(integers(t, kTensorStrides)) +
         (word(t, kTensorVirtual, 0) ? R"(,"virtual":true})" : "}");
}

// What describes an operation beside its tensors: a convolution's geometry, a mode.
std::string settings_json(const Descriptor& settings) {
  constexpr int kDilations = 102, kStrides = 103, kPost = 104, kPre = 105, kConvolution = 1,
                kPointwise = 0, kReduction = 21, kReductionOperator = 1600;
  if (settings.type == kConvolution)
    return R"(,"pad":)" + list(integers(settings, kPre)) + R"(,"pad_after":)" +
           list(integers(settings, kPost)) + R"(,"stride":)" + list(integers(settings, kStrides)) +
           R"(,"dilation":)" + list(integers(settings, kDilations));
  if (settings.type == kPointwise) return R"(,"mode":)" + std::to_string(word(settings, 0, -1));
  if (settings.type == kReduction)
    return R"(,"mode":)" + std::to_string(word(settings, kReductionOperator, -1));
  return "";
}

std::string operation_json(const Descriptor& operation) {
  std::string json = R"({"op":")" + word_of(kOperations, operation.type) + '"';
  for (const auto& [number, attribute] : operation.attributes) {
    if (attribute.type != kDescriptorType) continue;
    for (const Descriptor* const part : descriptors(operation, number))
      json += part->type == kTensor
                  ? ",\"" + word_of(kTensorKeys, number) + "\":" + tensor_json(*part)
                  : settings_json(*part);
  }
  return json + "}";
}

}  // namespace

std::vector<const Descriptor*> descriptors(const Descriptor& of, int attribute) {
  const auto found = of.attributes.find(attribute);
  if (found == of.attributes.end() || found->second.type != kDescriptorType) return {};
  std::vector<const Descriptor*> parts(static_cast<size_t>(found->second.count));
  std::memcpy(parts.data(), found->second.bytes.data(), parts.size() * sizeof(void*));
  return parts;
}

std::vector<int64_t> integers(const Descriptor& of, int attribute) {
  const auto found = of.attributes.find(attribute);
  if (found == of.attributes.end() || found->second.type != kInteger64) return {};
  std::vector<int64_t> values(static_cast<size_t>(found->second.count));
  std::memcpy(values.data(), found->second.bytes.data(), values.size() * sizeof(int64_t));
  return values;
}

int word(const Descriptor& of, int attribute, int otherwise) {
  const auto found = of.attributes.find(attribute);
  if (found == of.attributes.end() || found->second.bytes.empty()) return otherwise;
  int value = 0;
  std::memcpy(&value, found->second.bytes.data(),
              std::min(sizeof value, found->second.bytes.size()));
  return value;
}

const Descriptor* graph_of(const Descriptor& plan) {
  const Descriptor* graph = nullptr;
  for (const Descriptor* const configuration : descriptors(plan, kPlanConfiguration)) {
    if (configuration->heuristics)
      for (const Descriptor* const g : descriptors(*configuration->heuristics, kHeuristicsGraph))
        graph = g;
    for (const Descriptor* const engine : descriptors(*configuration, kConfigurationEngine))
      for (const Descriptor* const g : descriptors(*engine, kEngineGraph)) graph = g;
  }
  return graph;
}

std::vector<const Descriptor*> operations_of(const Descriptor& graph) {
  return descriptors(graph, kGraphOperations);
}

std::string operations_json(const Descriptor& plan) {
  std::string json;
  if (const Descriptor* const graph = graph_of(plan))
    for (const Descriptor* const operation : operations_of(*graph))
      json += (json.empty() ? "" : ",") + operation_json(*operation);
  return "[" + json + "]";
}

std::string dnn_type_word(int type) {
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
      return "i32";
    case 6:
      return "u8";
    case 9:
      return "bf16";
    case 10:
      return "i64";
    case 11:
      return "bool";
    case 12:
      return "f8e4m3";
    case 13:
      return "f8e5m2";
    default:
      return "type " + std::to_string(type);
  }
}

}  // namespace foretrace::emulated
