// A decoder's forward and backward pass as PyTorch's eager mode calls it: every kernel, every
// product, and what is allocated for how long. Autograd is a tape of functions that the backward
// pass runs from the end. What a layout puts between the calls are its hooks.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "scenarios/architecture/counts.h"
#include "scenarios/training_step/description.h"
#include "scenarios/training_step/memory.h"
#include "scenarios/training_step/places.h"
#include "scenarios/training_step/writer.h"

namespace foretrace::training {

inline constexpr std::int64_t kBf16 = 2;  // bytes of an element
inline constexpr std::int64_t kF8 = 1;
inline constexpr std::int64_t kF32 = 4;

/// What data parallel and tensor parallel layouts add. The groups of parameters are the blocks, and
/// behind the last of them the rest: embedding, last norm and head.
class Hooks {
 public:
  virtual ~Hooks() = default;
  virtual void before_forward(std::int64_t /*group*/) {}
  virtual void after_forward(std::int64_t /*group*/) {}
  virtual void before_backward(std::int64_t /*group*/) {}
  virtual void after_backward(std::int64_t /*group*/) {}
  /// A parameter's gradient is complete.
  virtual void gradient(std::int64_t /*elements*/) {}
  /// One of an expert's parameters, which fewer processes hold.
  virtual void expert_gradient(std::int64_t /*elements*/) {}
};

/// The layers of one pipeline stage.
struct StageLayers {
  std::int64_t begin = 0, end = 0;
  bool is_first = true, is_last = true;
  ContextNeighbours ring;
  std::int64_t stage = 0;
};

class Decoder {
 public:
  Decoder(const TrainingStep& step, const StageLayers& layers, Writer& out, Memory& memory,
          Hooks& hooks);

  /// `pass` numbers the micro-batches: their activations live until backward(pass). Of a stage of
  /// several chunks only the layers of one.
  void forward(std::int64_t pass, std::int64_t chunk = 0);
  /// `is_first`: gradients are stored; else they are added to what is there.
  void backward(std::int64_t pass, bool is_first, std::int64_t chunk = 0);
  /// As if so many passes had gone forward and backward since: those under way are numbered on.
  void skip(std::int64_t passes);
  /// A pipeline's last stage: the logits of all micro-batches become one tensor, which nobody
  /// keeps. Measured: one CatArrayBatchedCopy of them at the end of each step.
  void join_outputs();
  /// The optimizer over what this process holds, then gradients are freed.
  void update();

  std::int64_t held_parameters() const { return held_; }  ///< on this process, unsharded
  std::int64_t frozen_bytes() const;  ///< of them, where adapters alone are trained
  std::int64_t held_experts() const;  ///< of those
  /// Of those the ones that are trained: adapters', where there are any.
  std::int64_t trained_parameters() const;
  std::int64_t held_tensors() const { return tensors_; }
  std::int64_t group_parameters(std::int64_t group) const;  ///< of one FSDP group
  std::int64_t group_experts(std::int64_t group) const;     ///< of those the experts'
  std::int64_t groups() const { return layers_.end - layers_.begin + 1; }
  std::int64_t stream_bytes() const { return stream_; }  ///< of an element between blocks

 private:
  using Tape = std::vector<std::function<void()>>;

  void block(std::int64_t group);
  void block_forward();
  void attention_part();
  void mlp_part();
  void branch_norm();
  void head_norm(const char* id, std::int64_t width, std::int64_t weights);
  void norm_heads();
  void latent_products();
  void rotate(std::int64_t width, const char* joined);
  void cap_logits();
  void give_small(std::int64_t elements);
  void feed_forward(std::int64_t ffn);
  void experts_part();
  void route();
  void gate_shared();
  void send_rows(FrameworkWork work);
  void bring_rows(FrameworkWork work);
  void exchange_rows();
  void expert_products();
  void expert_forward(std::int64_t rows, std::int64_t times);
  void expert_backward(std::int64_t rows, std::int64_t times);
  /// Attention of some of this process's tokens to some keys.
  struct AttentionPart {
    std::int64_t queries = 0, keys = 0;  ///< tokens
    std::int64_t forward_flops = 0, backward_flops = 0;
  };
  AttentionPart causal_attention(const Layer& layer) const;
  AttentionPart ring_part(std::int64_t distance) const;
  void attend(const AttentionPart& part);
  void attend_back(const AttentionPart& part);
  void ring_attention();
  void ring_attention_back();
  void gather_keys(std::int64_t bytes);
  void pass_on(std::int64_t bytes, const char* work);
  void core();
  void unfused_attention();
  void norm(bool joins_residual = true);
  void linear(const char* id, std::int64_t inputs, std::int64_t outputs, bool cast_input,
              bool is_biased);
  /// Operands below 16 bits (narrow.cc): casts, and which type the products have.
  struct LinearSizes {
    std::int64_t inputs = 0, outputs = 0, tokens = 0;
    std::int64_t weights() const { return inputs * outputs; }
    std::int64_t input() const { return tokens * inputs; }
    std::int64_t gradient() const { return tokens * outputs; }
  };
  void narrow_forward(const std::string& name, const LinearSizes& sizes);
  void narrow_gradient(const std::string& name, const LinearSizes& sizes);
  void narrow_inputs(const std::string& name, const LinearSizes& sizes);
  void narrow_weights(const std::string& name, const LinearSizes& sizes);
  void cast(const std::string& id, std::int64_t elements, int copies, FrameworkWork work);
  void computes_narrow(bool is_gradient);
  void cast_held_weights();
  std::int64_t narrow_bytes(std::int64_t elements) const;
  /// Of a gathered operand, of so many bytes in 16 bits.
  std::int64_t gathered_bytes(std::int64_t bytes) const;
  DataType half() const { return step_.float16 ? DataType::Float16 : DataType::BFloat16; }
  void add_row_bias(bool is_biased);
  /// LoRA beside a linear layer (adapters.cc).
  bool has_adapter(const std::string& name) const;
  bool reads_input_again(const std::string& name) const;
  bool saves_adapters_input(const std::string& name) const;
  void adapt(const std::string& name, const LinearSizes& sizes);
  std::int64_t adapter_parameters(const Layer& layer) const;
  /// Of products that a recomputed layer keeps; what they give is there already when it runs again.
  bool is_kept_product(const std::string& name);
  bool keeps_attention() const {
    return step_.recompute == Recompute::Products || step_.keeps.attention;
  }
  void add_residual();
  /// A kernel each way: what is read and written, and a byte for each element, which is saved.
  void drop_out(const char* id, std::int64_t elements, std::int64_t width);
  void activation(std::int64_t rows, std::int64_t ffn);
  void rope(std::int64_t width);
  void embed();
  void head_and_loss();
  void fused_loss();
  void half_loss(std::int64_t logits);
  void megatron_loss();
  void split_qkv();
  void enter_tensor_parallel(std::int64_t linears);
  /// `is_linear`: behind a product, which has scattered already where splits_in_layers().
  void leave_tensor_parallel(bool is_linear = true);
  void add_input_gradients(std::int64_t count);
  void give_gradient(std::int64_t elements, bool is_complete, bool is_expert = false);
  void give_embedding(std::int64_t elements, std::int64_t width);
  /// Where gradients are held in float32, those of a backward pass are added behind it.
  void add_to_wide_gradients();
  void pointwise(const char* id, std::int64_t bytes, FrameworkWork work);
  /// `joins`: along another dimension than the first, or a sum.
  void collective(const char* name, std::int64_t bytes, const char* work = "", bool joins = true);
  /// A product with tensor parallel's collective before, behind or, where it may, beside it.
  void beside(const char* collective, std::int64_t bytes, bool may_overlap,
              const std::function<void()>& product);
  /// Megatron splits sequences: layers gather their inputs, or scatter what they sum.
  bool splits_in_layers() const { return step_.is_megatron_core() && step_.sequence_parallel; }
  bool uses_dtensor() const { return step_.tensor > 1 && step_.is_eager() && step_.dtensor; }
  /// One kernel for the operations of rope, or of an activation.
  bool fuses() const { return step_.is_megatron_core() || step_.compiled; }
  bool recomputes_block(std::int64_t group) const {
    if (step_.recompute == Recompute::Products) return true;
    return step_.recompute == Recompute::Full && (group + 1) % step_.recompute_every == 0;
  }
  void call_of_dtensor();
  void gather_logits();
  void keep_output(Memory::Id logits, std::int64_t bytes);
  Memory::Id save(std::int64_t bytes);
  /// Autocast keeps its copies of weights until the loss is there, recomputed layers' too.
  Memory::Id save_weight_copy(std::int64_t bytes);
  std::int64_t block_experts() const;  ///< parameters of a layer's experts on this process
  std::int64_t expert_tensors() const;
  void on_backward(std::function<void()> what) { tape_->push_back(std::move(what)); }
  static void run_back(Tape& tape);
  std::int64_t first_of_chunk(std::int64_t chunk) const;
  Layer layer_of(std::int64_t group) const;
  LayerParameters parameters_of(const Layer& layer) const;

  const TrainingStep& step_;
  const Architecture& model_;
  StageLayers layers_;
  Writer& out_;
  Memory& memory_;
  Hooks& hooks_;
  std::int64_t stream_;       ///< bytes of an element between blocks
  std::int64_t tokens_;       ///< of a micro-batch
  std::int64_t norm_tokens_;  ///< of those that this process normalises: fewer in sequence parallel
  std::int64_t q_, kv_, v_, mixed_, ffn_, vocab_;  ///< this process's share
  Layer layer_;                                    ///< that is being written
  std::int64_t rows_ = 0;                          ///< copies of tokens that it sends to experts
  std::int64_t experts_ = 0;                       ///< of a layer that it holds
  std::int64_t held_ = 0, tensors_ = 0;
  std::int64_t handed_out_ = 0;  ///< bytes of a pass's logits that stay until the step ends
  bool accumulates_ = false;
  bool shares_gradient_ = false;  ///< the weight's gradient goes on to the embedding
  std::int64_t products_ = 0;     ///< of the block that is being written
  std::vector<Memory::Id> kept_;  ///< of its forward pass, until the backward one
  bool runs_again_ = false;       ///< recomputation, which ends with the last tensor that is needed
  bool ends_early_ = false;       ///< and this is the part in which it does
  bool keeps_ = true;             ///< the forward pass saves for the backward one
  std::vector<Memory::Id> unsaved_, weight_copies_;
  std::vector<Memory::Id> gradients_;
  std::vector<std::int64_t> narrow_gradients_;  ///< elements; add_to_wide_gradients()
  std::map<std::int64_t, Tape> tapes_;          ///< of each pass's chunks
  Tape* tape_ = nullptr;
};

}  // namespace foretrace::training
