#include "scenarios/captured/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

namespace foretrace::captured {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Counts of a file may be anything: exact as far as a double is, and never beyond 64 bits.
std::int64_t whole(double count) {
  constexpr double kMost = 0x1p60;
  return static_cast<std::int64_t>(std::min(count, kMost));
}

double product_of(const Sizes& sizes) {
  double all = 1;
  for (const std::int64_t size : sizes) all *= static_cast<double>(size);
  return all;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

/// The shortest run of neighbours in memory along the last dimensions.
std::int64_t joined(const Tensor& tensor) {
  std::int64_t run = 1;
  if (tensor.strides.size() != tensor.shape.size()) return tensor.elements();
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] == 1) continue;
    if (tensor.strides[i] != run) return run;
    run *= tensor.shape[i];
  }
  return run;
}

const Tensor* largest(const Signature& signature) {
  const Tensor* found = nullptr;
  for (const Tensor& one : signature.tensors) {
    if (found == nullptr || one.elements() > found->elements()) found = &one;
  }
  return found;
}

Sizes broadcast(const std::vector<Tensor>& tensors) {
  Sizes all;
  for (const Tensor& one : tensors) {
    Sizes shape = one.shape;
    const std::size_t dimensions = std::max(all.size(), shape.size());
    all.insert(all.begin(), dimensions - all.size(), 1);
    shape.insert(shape.begin(), dimensions - shape.size(), 1);
    for (std::size_t i = 0; i < dimensions; ++i) all[i] = std::max(all[i], shape[i]);
  }
  return all;
}

std::int64_t bytes_of(const Tensor& tensor) {
  return tensor.different_elements() * bytes_of_type(tensor.type);
}

/// "[2, 2]" is {2, 2}; what is no list of numbers is empty.
Sizes numbers(const Signature& signature, std::size_t argument) {
  if (argument >= signature.plain.size()) return {};
  const auto json = nlohmann::json::parse(signature.plain[argument], nullptr, false);
  constexpr double kMost = 0x1p20;  // of a stride, a padding
  Sizes found;
  const auto take = [&](const nlohmann::json& one) {
    if (!one.is_number_integer()) return;
    found.push_back(static_cast<std::int64_t>(std::clamp(one.get<double>(), -kMost, kMost)));
  };
  take(json);
  if (!json.is_array()) return found;
  for (const auto& one : json) take(one);
  return found;
}

/// Elements that one index of aten::index_select takes along: those of all other dimensions.
std::int64_t slice_elements(const Signature& signature, const Tensor& table) {
  const Sizes dimension = numbers(signature, 1);
  const auto dimensions = static_cast<std::int64_t>(table.shape.size());
  std::int64_t at = dimension.empty() ? 0 : dimension.front();
  if (at < 0) at += dimensions;
  if (at < 0 || at >= dimensions || table.shape[static_cast<std::size_t>(at)] < 1) return 1;
  return table.elements() / table.shape[static_cast<std::size_t>(at)];
}

std::int64_t gathered_bytes(const Signature& signature) {
  const Tensor& table = signature.tensors.front();
  const Tensor& index = signature.tensors.back();
  const std::int64_t width = bytes_of_type(table.type);
  if (signature.name == "aten::gather") return 2 * index.elements() * width;
  std::int64_t row = table.shape.size() > 1 ? table.shape.back() : 1;
  if (signature.name == "aten::index_select") row = slice_elements(signature, table);
  const auto asked = static_cast<double>(index.elements());
  return whole(2 * asked * static_cast<double>(row * width) + asked * 8);
}

/// Elements of one thread of PyTorch's kernel for aten::index, whose indices no profiler shows:
/// the second number of index_elementwise_kernel<128, 4>.
constexpr std::int64_t kIndexedByThread = 4;

/// Arguments that are read, and what has the size of queries, keys and values behind them.
std::int64_t attention_bytes(const Signature& signature, std::int64_t read) {
  const auto& tensors = signature.tensors;
  const bool backward = has(signature.name, "backward");
  const std::size_t first = backward ? 1 : 0, count = backward ? 3 : 1;
  for (std::size_t i = first; i < std::min(first + count, tensors.size()); ++i) {
    read += tensors[i].elements() * bytes_of_type(tensors[i].type);
  }
  return read;
}

bool broadcasts(const std::vector<Tensor>& tensors) {
  const Sizes all = broadcast(tensors);
  return std::ranges::all_of(tensors, [&](const Tensor& one) {
    const std::size_t ahead = all.size() - one.shape.size();
    for (std::size_t i = 0; i < one.shape.size(); ++i) {
      if (one.shape[i] != 1 && one.shape[i] != all[ahead + i]) return false;
    }
    return true;
  });
}

std::int64_t moved_bytes(const Signature& signature, std::uint64_t threads) {
  const std::string_view name = signature.name;
  if (signature.tensors.empty()) return 0;
  std::int64_t read = 0;
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  for (const Tensor& one : signature.tensors) read = std::min(kMost, read + bytes_of(one));
  if (name == "aten::copy_") return read;
  if (has(name, "_attention_")) return attention_bytes(signature, read);
  if (name == "aten::index" && signature.tensors.size() == 1) {
    return whole(2 * static_cast<double>(threads) * kIndexedByThread *
                 static_cast<double>(bytes_of_type(signature.tensors.front().type)));
  }
  if (name == "aten::_index_put_impl_") return 2 * bytes_of(signature.tensors.back());
  if (is_one_of(name, {"aten::embedding", "aten::index_select", "aten::index", "aten::gather"})) {
    return gathered_bytes(signature);
  }
  if (name.starts_with("aten::_foreach") || has(name, "fused")) return read;
  if (is_one_of(name, {"aten::sum", "aten::mean", "aten::amax", "aten::argmax", "aten::max",
                       "aten::var", "aten::linalg_vector_norm", "aten::any", "aten::all"})) {
    return read;
  }
  if (name == "aten::cat") return 2 * read;
  const Tensor& first = signature.tensors.front();
  if (name.ends_with('_')) return read + bytes_of(first);
  if (!broadcasts(signature.tensors)) return read + bytes_of(first);
  return read + whole(product_of(broadcast(signature.tensors)) *
                      static_cast<double>(bytes_of_type(first.type)));
}

bool is_true(const Signature& signature, std::size_t argument) {
  return argument < signature.plain.size() &&
         is_one_of(signature.plain[argument], {"true", "\"True\"", "1"});
}

bool is_positive(const Signature& signature, std::size_t argument) {
  if (argument >= signature.plain.size()) return false;
  const auto json = nlohmann::json::parse(signature.plain[argument], nullptr, false);
  return json.is_number() && json.get<double>() > 0;
}

std::string short_name(std::string_view name) {
  if (const auto colons = name.rfind("::"); colons != std::string_view::npos)
    name.remove_prefix(colons + 2);
  std::string word{name};
  while (word.starts_with('_')) word.erase(0, 1);
  std::ranges::replace_if(  // it becomes a scenario's word
      word, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '_'; }, '_');
  return word;
}

/// Queries and keys of a tile: the smallest of the kernels' (fmha_cutlassF_f32_aligned_64x64).
constexpr std::int64_t kAttentionTile = 64;

/// Heads and tokens of attention's queries: cuDNN's are (batch, heads, tokens, width), those of the
/// other ways (batch, tokens, heads, width).
Work attention(const Signature& signature) {
  const auto& tensors = signature.tensors;
  const bool backward = has(signature.name, "backward");
  const std::size_t at = backward ? 1 : 0;  // behind the gradient
  Work work;
  if (tensors.size() < at + 3 || tensors[at].shape.size() != 4 || tensors[at + 1].shape.size() != 4)
    return work;
  const Sizes& q = tensors[at].shape;
  const Sizes& k = tensors[at + 1].shape;
  const std::size_t tokens = has(signature.name, "cudnn") ? 2 : 1, heads = 3 - tokens;
  // Kernels take whole tiles; a causal mask leaves out those above the diagonal.
  // _efficient_attention_*: custom_mask_type, 0 without a mask.
  const auto tiles = [](std::int64_t of) { return (of + kAttentionTile - 1) / kAttentionTile; };
  const std::int64_t rows = tiles(q[tokens]), columns = tiles(k[tokens]);
  const Sizes mask = numbers(signature, backward ? 14 : 9);
  const bool half =
      has(signature.name, "efficient") && !mask.empty() && mask.front() != 0 && rows == columns;
  const auto tall = static_cast<double>(rows), wide = static_cast<double>(columns);
  const double worked = half ? tall * (tall + 1) / 2 : tall * wide;
  work.flops = whole((backward ? 10 : 4) * static_cast<double>(q[0] * q[heads]) * worked *
                     kAttentionTile * kAttentionTile * static_cast<double>(q[3]));
  work.shape.inner = static_cast<std::uint64_t>(q[3]);
  work.shape.joined = static_cast<std::uint64_t>(q[tokens]);
  work.shape.channels = static_cast<std::uint64_t>(q[0] * q[heads]);
  // _cudnn_attention_*: is_causal, dropout_p, and a bias behind what else has four dimensions (the
  // sums of exponentials have one column).
  const bool causal = is_true(signature, backward ? 14 : 10);
  const bool drops = is_positive(signature, backward ? 13 : 9) && has(signature.name, "cudnn");
  const bool masked = std::any_of(
      tensors.begin() +
          static_cast<std::ptrdiff_t>(std::min(tensors.size(), at + (backward ? 5 : 3))),
      tensors.end(),
      [&](const Tensor& one) { return one.shape.size() == 4 && one.shape[3] == k[tokens]; });
  work.shape.name =
      fmt::format("{}.{}_{}{}{}{}", short_name(signature.name), tensors[at].type, q[3],
                  causal ? "_causal" : "", masked ? "_masked" : "", drops ? "_dropout" : "");
  return work;
}

/// Rows of an image's height or width behind a convolution.
std::int64_t outputs(std::int64_t size, std::int64_t taps, std::int64_t stride,
                     std::int64_t padding, std::int64_t dilation) {
  return std::max<std::int64_t>(
      1, (size + 2 * padding - dilation * (taps - 1) - 1) / std::max<std::int64_t>(1, stride) + 1);
}

Work convolution(const Signature& signature, bool backward) {
  const auto& tensors = signature.tensors;
  const std::size_t at = backward ? 1 : 0;
  Work work;
  if (tensors.size() < at + 2 || tensors[at].shape.size() < 3 ||
      tensors[at + 1].shape.size() != tensors[at].shape.size())
    return work;
  const Sizes& x = tensors[at].shape;
  const Sizes& w = tensors[at + 1].shape;
  // cudnn_convolution(x, w, padding, stride, dilation, groups, ...);
  // convolution_backward(gradient, x, w, bias_sizes, stride, padding, dilation, ...)
  const Sizes stride = numbers(signature, backward ? 4 : 3);
  const Sizes padding = numbers(signature, backward ? 5 : 2);
  const Sizes dilation = numbers(signature, backward ? 6 : 4);
  const auto of = [](const Sizes& sizes, std::size_t i, std::int64_t otherwise) {
    return sizes.empty() ? otherwise : sizes[std::min(i, sizes.size() - 1)];
  };
  auto places = static_cast<double>(x[0]);
  std::int64_t taps = 1;
  for (std::size_t i = 2; i < x.size(); ++i) {
    places *= static_cast<double>(
        outputs(x[i], w[i], of(stride, i - 2, 1), of(padding, i - 2, 0), of(dilation, i - 2, 1)));
    taps *= w[i];
  }
  const std::int64_t groups = std::max<std::int64_t>(1, x[1] / std::max<std::int64_t>(1, w[1]));
  work.flops = whole((backward ? 4 : 2) * places * static_cast<double>(w[0] * w[1] * taps));
  work.shape.inner = static_cast<std::uint64_t>(w[1]);
  work.shape.joined = static_cast<std::uint64_t>(
      whole(static_cast<double>(x[0]) * product_of({x.begin() + 2, x.end()})));
  work.shape.channels = static_cast<std::uint64_t>(w[0]);
  const bool last = tensors[at].strides.size() > 1 && tensors[at].strides[1] == 1;
  work.shape.name = fmt::format("{}.{}_{}_t{}_s{}_{}", short_name(signature.name), tensors[at].type,
                                last ? "nhwc" : "nchw", taps, of(stride, 0, 1),
                                groups == 1 ? "dense"
                                : w[1] == 1 ? "depthwise"
                                            : "groups");
  return work;
}

}  // namespace

Work work_of(const Signature& signature, std::uint64_t threads) {
  Work work;
  if (has(signature.name, "_attention_")) work = attention(signature);
  work.bytes = moved_bytes(signature, threads);
  if (work.flops > 0) return work;
  const Tensor* tensor = largest(signature);
  if (tensor == nullptr) return work;
  std::int64_t run = std::int64_t{1} << 20;
  bool any = false;
  for (const Tensor& one : signature.tensors) {
    if (one.elements() <= 1) continue;
    run = any ? std::min(run, joined(one)) : joined(one);
    any = true;
  }
  work.shape.inner = static_cast<std::uint64_t>(tensor->shape.empty() ? 1 : tensor->shape.back());
  work.shape.joined = static_cast<std::uint64_t>(any ? run : 1);
  work.shape.channels = static_cast<std::uint64_t>(tensor->shape.size() > 1 ? tensor->shape[1] : 1);
  return work;
}

Work closed_work_of(const Signature& signature) {
  const std::string_view name = signature.name;
  const bool backward = has(name, "backward");
  Work work;
  if (has(name, "attention")) work = attention(signature);
  if (has(name, "convolution")) work = convolution(signature, backward);
  work.bytes = moved_bytes(signature, 0);
  if (work.shape.name.empty()) {
    work.shape = work_of(signature, 0).shape;
    const std::string type = signature.tensors.empty() ? "none" : signature.tensors.front().type;
    work.shape.name = fmt::format("{}.{}", short_name(name), type);
  }
  return work;
}

}  // namespace foretrace::captured
