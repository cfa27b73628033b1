#include "scenarios/serving/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenarios/program/product_type.h"

namespace foretrace::serving {
namespace {

constexpr std::int64_t kIndex = 8;

}  // namespace

Calls::Calls(const Serving& serving, Program& program, const SourceSpot& at)
    : serving_{serving},
      model_{serving.model},
      program_{program},
      line_{at.line},
      column_{at.column},
      stream_{static_cast<std::uint32_t>(program.streams.size())},
      fused_{serving.engine.kind != EngineKind::Foretrace} {
  program.streams.push_back({"engine", 0, StreamKind::NonBlocking, 0});
}

void Calls::add(OpKind kind, std::string_view label) {
  block_->push_back(
      {OpId{program_.op_count++}, std::string{label}, line_, column_, std::move(kind)});
}

void Calls::inside(OpKind kind, const std::function<void()>& write) {
  add(std::move(kind));
  Block* const outer = block_;
  block_ = const_cast<Block*>(block_of(outer->back().kind));  // NOLINT(*-const-cast)
  write();
  block_ = outer;
}

void Calls::region(std::string name, const std::function<void()>& write) {
  inside(Region{.name = std::move(name), .ops = {}}, write);
}

void Calls::capture(std::uint32_t graph, const Batch& batch) {
  inside(GraphCapture{{{graph}, {}}, stream(), {}}, [&] { forward(batch); });
}

void Calls::launch(std::uint32_t graph) { add(GraphLaunch{{{graph}, {}}, stream()}); }

BufferRef Calls::buffer(const std::string& name, std::int64_t bytes) {
  const auto [found, is_new] =
      buffers_.emplace(name, BufferId{static_cast<std::uint32_t>(program_.buffers.size())});
  if (is_new) {
    Buffer made;
    made.name = name;
    made.contents = Contents::Normal;
    program_.buffers.push_back(std::move(made));
  }
  Bytes& size = program_.buffers[found->second.value].size;
  size.count = std::max(size.count, static_cast<std::uint64_t>(bytes));
  return {found->second, {}};
}

void Calls::host(FrameworkWork work, std::uint32_t count) {
  if (eager_) add(FrameworkCall{work, count});
}

void Calls::kernel(std::string_view id, KernelKind kind, std::int64_t bytes, std::int64_t width) {
  host(FrameworkWork::Forward);
  add(LibraryKernel{stream(), kind, {}, {bytes}, width}, id);
}

void Calls::attends(std::string_view id, const AttentionWork& work) {
  host(FrameworkWork::Attention);
  add(LibraryKernel{stream(), KernelKind::AttentionForward, work.flops, {work.bytes}, work.width},
      id);
}

/// y = x W^T of `rows` rows: W in a buffer of this layer's own. `batch`: so many of them.
void Calls::product(std::string_view id, std::int64_t outputs, std::int64_t inputs,
                    std::int64_t rows, std::int64_t batch, bool is_narrow) {
  const Precision precision = is_narrow ? serving_.precision : Precision::BFloat16;
  const DataType type = product_type(precision);
  const Scales scales = product_scales(precision);
  const std::int64_t row_bytes = bytes_of(batch * rows * inputs, type, second_scales(scales));
  if (type != DataType::BFloat16) {
    kernel("cast_rows", KernelKind::Narrow, batch * rows * inputs * kHalf + row_bytes);
  }
  host(FrameworkWork::Linear);
  add(Gemm{.stream = stream(),
           .m = outputs,
           .n = rows,
           .k = inputs,
           .type = type,
           .a = buffer(fmt::format("{}_{}", id, layer_),
                       bytes_of(batch * outputs * inputs, type, scales)),
           .b = buffer("rows", row_bytes),
           .c = buffer("results", batch * rows * outputs * kHalf),
           .transpose_a = true,
           .batch = batch,
           .scales = scales},
      id);
}

/// Of what each of the GPUs has added up of a layer's half.
void Calls::all_reduce(std::int64_t rows) {
  if (serving_.layout.tensor == 1 || adds_itself(serving_, rows)) return;
  const std::int64_t bytes = summed_bytes(serving_, rows);
  const BufferRef whole = buffer("sums", bytes);
  host(FrameworkWork::Collective);
  add(NcclCollective{.kind = CollectiveKind::AllReduce,
                     .comm = {},
                     .stream = stream(),
                     .send = whole,
                     .recv = whole,
                     .size = {bytes},
                     .type = DataType::BFloat16,
                     .root = {}},
      "all_reduce");
}

/// Rows of every group to all of them, or sums of what these made of the rows back.
void Calls::collective(CollectiveKind kind, std::int64_t rows) {
  if (serving_.layout.data == 1 || exchanges_itself(serving_)) return;
  const std::int64_t bytes = summed_bytes(serving_, rows);
  const BufferRef own = buffer("rows_of_a_group", bytes);
  const BufferRef all = buffer("rows_of_all", bytes * serving_.layout.data);
  const bool gathers = kind == CollectiveKind::AllGather;
  host(FrameworkWork::Collective);
  add(NcclCollective{.kind = kind,
                     .comm = {},
                     .stream = stream(),
                     .send = gathers ? own : all,
                     .recv = gathers ? all : own,
                     .size = {bytes},
                     .type = DataType::BFloat16,
                     .root = {}},
      gathers ? "gather_rows" : "scatter_sums");
}

void Calls::add_residual(std::int64_t rows) {
  if (!fused_) kernel("add", KernelKind::Pointwise, 3 * rows * model_.hidden * kHalf);
}

/// Rotary embedding of queries and keys, `width` elements of a token: one kernel in the engines
/// that have their own, else as PyTorch writes it: two products, half of it negated and joined.
void Calls::rotate(std::int64_t rows, std::int64_t width) {
  const std::int64_t bytes = rows * width * kHalf;
  if (fused_) return kernel("rotate", KernelKind::Pointwise, 2 * bytes);
  kernel("times_cosine", KernelKind::Strided, 2 * bytes);
  kernel("negate", KernelKind::Strided, bytes);
  kernel("join_halves", KernelKind::Concatenate, 2 * bytes);
  kernel("times_sine", KernelKind::Strided, 2 * bytes);
  kernel("add_rotated", KernelKind::Pointwise, 3 * bytes);
}

void Calls::latent_products(const Batch& batch) {
  const std::int64_t rows = batch.tokens();
  const training::Latent& latent = model_.latent;
  const std::int64_t heads = model_.heads / serving_.layout.tensor;
  if (latent.queries > 0) {
    product("query_down", latent.queries, model_.hidden, rows);
    kernel("query_norm", KernelKind::RmsNorm, 2 * rows * latent.queries * kHalf, latent.queries);
    product("query_up", heads * model_.head_dim, latent.queries, rows);
  } else {
    product("query", heads * model_.head_dim, model_.hidden, rows);
  }
  product("keys_down", latent.keys + latent.rotary, model_.hidden, rows);
  kernel("keys_norm", KernelKind::RmsNorm, 2 * rows * latent.keys * kHalf, latent.keys);
  const bool expands = expands_keys(model_);
  const std::int64_t unrotated = model_.head_dim - latent.rotary;
  if (expands && batch.chunk_tokens > 0) {
    product("keys_up", heads * (unrotated + model_.value_width()), latent.keys, batch.chunk_keys);
  }
  // Heads' own matrices are multiplied into queries, and into what attention gives.
  const std::int64_t absorbed = expands ? batch.decodes + batch.guesses : rows;
  if (absorbed == 0) return;
  product("absorb_queries", latent.keys, unrotated, absorbed, heads, false);
  product("absorb_values", model_.value_width(), latent.keys, absorbed, heads, false);
}

/// Its queries, keys and weights are on every GPU whole; scores, then the best of them.
void Calls::index(const training::Layer& layer, const Batch& batch) {
  const training::Indexer& indexer = model_.indexer;
  const std::int64_t rows = batch.tokens(), width = indexer.heads * indexer.head_dim;
  product("index_queries", width, model_.latent.queries, rows);
  product("index_keys", indexer.head_dim, model_.hidden, rows);
  product("index_weights", indexer.heads, model_.hidden, rows, 1, false);
  kernel("index_norm", KernelKind::LayerNorm, 2 * rows * indexer.head_dim * kHalf,
         indexer.head_dim);
  rotate(rows, width + indexer.head_dim);
  kernel("index_narrow", KernelKind::Narrow, rows * (width + indexer.head_dim) * (kHalf + 1));
  for (const bool is_decoding : {true, false}) {
    const AttentionWork work = index_work(serving_, layer, batch, is_decoding);
    if (work.flops == 0) continue;
    attends(is_decoding ? "index_decode" : "index_prefill", work);
    const std::int64_t pairs = is_decoding ? batch.decode_keys : batch.chunk_pairs;
    kernel("best_keys", KernelKind::Softmax, pairs * kFloat);
  }
}

void Calls::linear_attention(const Batch& batch) {
  const training::Linear& linear = model_.linear;
  const std::int64_t rows = batch.tokens(), tensor = serving_.layout.tensor;
  const std::int64_t convolved = linear.convolved() / tensor, heads = linear.value_heads / tensor;
  const std::int64_t values = heads * linear.value_dim;
  product("mix", convolved + values, model_.hidden, rows);
  product("steps", 2 * heads, model_.hidden, rows, 1, false);
  kernel("convolve", KernelKind::Strided, 2 * rows * convolved * kHalf);
  kernel("decay", KernelKind::Pointwise, 3 * rows * heads * kFloat);
  if (batch.decodes > 0) {
    const std::int64_t states = batch.decodes * linear.state() / tensor * kFloat;
    kernel("update_states", KernelKind::Pointwise,
           2 * states + 2 * (batch.decodes + batch.guesses) * convolved * kHalf);
  }
  if (batch.chunk_tokens > 0) attends("delta_rule", delta_rule_work(serving_, batch.chunk_tokens));
  kernel("gated_norm", KernelKind::RmsNorm, 3 * rows * values * kHalf, linear.value_dim);
  product("output", model_.hidden, values, rows);
  all_reduce(rows);
}

void Calls::attention(const training::Layer& layer, const Batch& batch) {
  if (layer.is_linear) return linear_attention(batch);
  const std::int64_t rows = batch.tokens();
  const std::int64_t q = model_.q_width() / serving_.layout.tensor;
  const std::int64_t heads = std::max<std::int64_t>(1, model_.kv_heads / serving_.layout.tensor);
  const std::int64_t k = heads * model_.head_dim, v = heads * model_.value_width();
  if (model_.latent.keys > 0) {
    latent_products(batch);
  } else {
    product("qkv", (model_.attention_gate ? 2 : 1) * q + k + v, model_.hidden, rows);
  }
  if (layer.indexes) index(layer, batch);
  if (model_.qk_norm != training::QkNorm::None) {
    kernel("query_norm", KernelKind::RmsNorm, 2 * rows * q * kHalf, model_.head_dim);
    kernel("key_norm", KernelKind::RmsNorm, 2 * rows * k * kHalf, model_.head_dim);
  }
  if (layer.rotates) {
    const bool apart = !fused_ && model_.qk_norm != training::QkNorm::None;
    rotate(rows, apart ? q : q + k);
    if (apart) rotate(rows, k);
  }
  const std::int64_t stored = model_.latent.keys > 0
                                  ? rows * (model_.latent.keys + model_.latent.rotary) * kHalf
                                  : rows * k * kHalf;
  kernel("store_keys", KernelKind::Gather, 2 * stored);
  if (!fused_) kernel("store_values", KernelKind::Gather, 2 * rows * v * kHalf);
  // PyTorch's call lets the heads that share keys be rows, and copies queries and results for it.
  const int copies = !fused_ && batch.decodes > 1 ? 3 : 0;
  for (int i = 0; i < copies; ++i) {
    kernel("order_heads", KernelKind::Strided, 2 * batch.decodes * q * kHalf);
  }
  if (batch.decodes > 0) attends("decode", decode_attention(serving_, layer, batch));
  if (batch.chunk_tokens > 0) attends("prefill", chunk_attention(serving_, layer, batch));
  if (!fused_ && batch.decodes > 0 && batch.chunk_tokens > 0) {
    kernel("join_rows", KernelKind::Concatenate, 2 * rows * q * kHalf);
  }
  if (model_.attention_gate) kernel("gate", KernelKind::Pointwise, 3 * rows * q * kHalf);
  product("output", model_.hidden, model_.heads * model_.value_width() / serving_.layout.tensor,
          rows);
  all_reduce(rows);
}

void Calls::activation(std::int64_t width, std::int64_t rows) {
  const std::int64_t bytes = rows * width * kHalf;
  if (!model_.gated) return kernel("activation", KernelKind::Pointwise, 2 * bytes);
  if (fused_) return kernel("activation", KernelKind::Pointwise, 3 * bytes);
  kernel("activation", KernelKind::Strided, 2 * bytes);
  kernel("times_gate", KernelKind::Strided, 3 * bytes);
}

void Calls::feed_forward(std::int64_t width, std::int64_t rows) {
  if (width == 0) return;
  product("up", (model_.gated ? 2 : 1) * width, model_.hidden, rows);
  activation(width, rows);
  product("down", model_.hidden, width, rows);
}

void Calls::shared_expert(std::int64_t rows) {
  feed_forward(model_.shared_ffn / serving_.layout.tensor, rows);
}

/// Tokens of all groups reach the experts of this GPU.
void Calls::experts(std::int64_t own_rows) {
  const training::Architecture& model = model_;
  const std::int64_t rows = own_rows * serving_.layout.data;
  const std::int64_t scores = own_rows * model.experts * kFloat;
  product("router", model.experts, model.hidden, own_rows, 1, false);
  kernel("router_best", KernelKind::Softmax, 2 * scores);
  collective(CollectiveKind::AllGather, own_rows);
  const int small = fused_ ? 2 : 14;  // sums, casts, sorting, counts, order
  for (int i = 0; i < small; ++i) {
    kernel("router_order", KernelKind::Pointwise, 2 * rows * model.top_k * kIndex);
  }
  const auto [all, each, copies, width] = expert_work(serving_, own_rows);
  if (!fused_) kernel("sort_rows", KernelKind::Gather, 2 * copies * model.hidden * kHalf);
  product("expert_up", 2 * width, model.hidden, each, all);
  activation(width, copies);
  product("expert_down", model.hidden, width, each, all);
  if (!fused_) kernel("weigh_rows", KernelKind::Pointwise, 2 * copies * model.hidden * kHalf);
  kernel("sum_rows", KernelKind::Gather, (copies + rows) * model.hidden * kHalf);
  collective(CollectiveKind::ReduceScatter, own_rows);
  shared_expert(own_rows);
}

void Calls::layer(const training::Layer& layer, const Batch& batch) {
  const std::int64_t rows = batch.tokens();
  // Engines with kernels of their own add the residual in the norm.
  const std::int64_t norm = (fused_ ? 4 : 2) * rows * model_.hidden * kHalf;
  kernel("attention_norm", KernelKind::RmsNorm, norm, model_.hidden);
  attention(layer, batch);
  add_residual(rows);
  if (model_.norms > 1) {
    kernel("feed_forward_norm", KernelKind::RmsNorm, norm, model_.hidden);
  }
  if (layer.has_experts) {
    experts(rows);
  } else {
    feed_forward(model_.dense_width() / serving_.layout.tensor, rows);
  }
  all_reduce(rows);
  add_residual(rows);
  for (std::int64_t i = 2; i < model_.norms; ++i) {
    kernel("after_norm", KernelKind::RmsNorm, norm, model_.hidden);
  }
}

/// The last norm, the head, and the likeliest token of each request, and behind each guess.
void Calls::ends(const Batch& batch) {
  const std::int64_t rows = batch.requests() + batch.guesses;
  if (batch.chunk_tokens > 0) {
    kernel("last_rows", KernelKind::Gather, 2 * rows * model_.hidden * kHalf);
  }
  kernel("norm", KernelKind::RmsNorm, 2 * rows * model_.hidden * kHalf, model_.hidden);
  const std::int64_t words = model_.vocab / serving_.layout.tensor;
  layer_ = model_.layers;
  product("head", words, model_.hidden, rows, 1, false);
  kernel("sample", KernelKind::Softmax, rows * words * kHalf);
}

void Calls::forward(const Batch& batch) {
  kernel("embed", KernelKind::Gather, 2 * batch.tokens() * model_.hidden * kHalf);
  if (!fused_) {
    for (int i = 0; i < 2; ++i) {
      kernel("angles", KernelKind::Gather, 2 * batch.tokens() * model_.head_dim * kHalf);
    }
  }
  for (layer_ = serving_.first_layer(); layer_ < model_.layers; ++layer_) {
    layer(model_.layer(layer_), batch);
  }
  ends(batch);
  if (guesses_by_layer(serving_)) guess(batch);
}

/// By a layer of its own, from what the last one made of a token and from the next token: of all
/// tokens once, since its cache needs them, then of each request's newest.
void Calls::guess(const Batch& all) {
  Batch newest = all;
  newest.guesses = 0;
  newest.decodes = all.requests();
  newest.decode_keys = all.decode_keys + all.chunk_keys;
  newest.chunks = newest.chunk_tokens = newest.chunk_keys = newest.chunk_pairs = 0;
  for (std::int64_t i = 0; i < serving_.engine.guesses(); ++i) {
    const Batch& batch = i == 0 ? all : newest;
    layer_ = model_.layers;
    product("guess_in", model_.hidden, 2 * model_.hidden, batch.tokens(), 1, false);
    layer(model_.layer(model_.layers - 1), batch);
    ends(newest);
  }
}

void Calls::send(const Batch& batch) {
  const auto bytes = static_cast<std::uint64_t>(3 * batch.tokens() * kIndex);
  const BufferRef tokens = buffer("tokens", static_cast<std::int64_t>(bytes));
  const BufferRef host = buffer("tokens_host", static_cast<std::int64_t>(bytes));
  program_.buffers[host.first.value].memory = MemoryKind::Pinned;
  add(MemcpyAsync{stream(), host, tokens, {}, {}, {static_cast<std::int64_t>(bytes)}}, "send");
}

void Calls::fetch(const Batch& batch) {
  const std::int64_t bytes = batch.requests() * kIndex;
  const BufferRef next = buffer("next", bytes), host = buffer("next_host", bytes);
  program_.buffers[host.first.value].memory = MemoryKind::Pinned;
  add(MemcpyAsync{stream(), next, host, {}, {}, {bytes}}, "fetch");
  add(StreamSynchronize{stream()});
}

}  // namespace foretrace::serving
