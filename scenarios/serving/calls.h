// What a layer calls, by engine: the operations of one host thread, with weights in buffers of
// their own. Internal to scenarios/serving.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "scenarios/serving/iteration.h"

namespace foretrace::serving {

class Calls {
 public:
  Calls(const Serving& serving, Program& program, const SourceSpot& at);

  /// The model's forward pass over a batch, and its next tokens.
  void forward(const Batch& batch);
  /// Tokens and positions to the device; next tokens back, which waits for them.
  void send(const Batch& batch);
  void fetch(const Batch& batch);

  void launch(std::uint32_t graph);
  void capture(std::uint32_t graph, const Batch& batch);
  void region(std::string name, const std::function<void()>& write);
  /// Kernel by kernel: the host's work of each call counts.
  void is_eager(bool eager) { eager_ = eager; }

  Block take() { return std::move(ops_); }

 private:
  void add(OpKind kind, std::string_view label = {});
  void inside(OpKind block, const std::function<void()>& write);
  void host(FrameworkWork work, std::uint32_t count = 1);
  void kernel(std::string_view id, KernelKind kind, std::int64_t bytes, std::int64_t width = 0);
  void product(std::string_view id, std::int64_t outputs, std::int64_t inputs, std::int64_t rows,
               std::int64_t batch = 1, bool is_narrow = true);
  void attends(std::string_view id, const AttentionWork& work);
  void all_reduce(std::int64_t rows);
  void collective(CollectiveKind kind, std::int64_t rows);
  void layer(const training::Layer& layer, const Batch& batch);
  void attention(const training::Layer& layer, const Batch& batch);
  void latent_products(const Batch& batch);
  void index(const training::Layer& layer, const Batch& batch);
  void linear_attention(const Batch& batch);
  void rotate(std::int64_t rows, std::int64_t width);
  void feed_forward(std::int64_t width, std::int64_t rows);
  void experts(std::int64_t rows);
  void shared_expert(std::int64_t rows);
  void activation(std::int64_t width, std::int64_t rows);
  void add_residual(std::int64_t rows);
  void guess(const Batch& all);
  void ends(const Batch& batch);
  BufferRef buffer(const std::string& name, std::int64_t bytes);
  StreamRef stream() const { return {stream_, {}}; }

  const Serving& serving_;
  const training::Architecture& model_;
  Program& program_;
  int line_, column_;
  StreamId stream_;
  bool fused_, eager_ = false;
  std::int64_t layer_ = 0;
  std::map<std::string, BufferId, std::less<>> buffers_;
  Block ops_;
  Block* block_ = &ops_;
};

}  // namespace foretrace::serving
