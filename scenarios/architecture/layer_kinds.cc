// Which layers have windows, experts and rotary positions: lists and periods of a config.json, as
// transformers 5.24 makes lists of them (configuration_*.py, `layer_types`).
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/architecture/traits.h"

namespace foretrace::training {
namespace {

/// Of a list that may be longer than a cut model, or shorter than a grown one, which repeats it.
template <class T>
T at(const std::vector<T>& list, std::int64_t index) {
  return list[static_cast<std::size_t>(index) % list.size()];
}

/// Whether each layer's queries and keys are rotated.
class Rotation {
 public:
  Rotation(ConfigValues& values, const Json& type, const Architecture& model)
      : listed_{values.numbers({"no_rope_layers"})},
        every_{type.contains("unrotated_every") ? values.size({"no_rope_layer_interval"}) : 0},
        windows_only_{type.value("rotates_windows_only", false)},
        rotates_{model.positions == 0 && !model.is_placeless} {}

  bool of(std::int64_t index, bool has_window, bool any_window) const {
    if (!rotates_) return false;
    if (windows_only_) return has_window || !any_window;
    if (!listed_.empty()) return at(listed_, index) != 0;
    return every_ == 0 || (index + 1) % every_ != 0;
  }

 private:
  std::vector<std::int64_t> listed_;
  std::int64_t every_;
  bool windows_only_, rotates_;
};

class Windows {
 public:
  Windows(ConfigValues& values, const Json& type)
      : rule_{type.value("window", std::string{})},
        size_{values.size({"sliding_window", "window_size"})},
        chunk_{rule_ == "chunks" ? values.size({"attention_chunk_size"}) : 0} {
    // A null list is none, as an absent one.
    if (values.is_default("layer_types")) words_ = values.words({"layer_types"});
    from_ = values.size({"max_window_layers"});
    const bool is_asked = type.value("window_if_asked", false);
    if (is_asked && !values.flag({"use_sliding_window"}, false)) size_ = 0;
    if (rule_.empty() && size_ > 0) {
      values.warning("'sliding_window' is not followed",
                     "transformers' model of this type attends to all tokens before one");
    }
    period_ = period(values, type);
    has_linear_ = type.value("linear", false);
    if (has_linear_) linear_every_ = values.size({"full_attention_interval"});
    if (rule_ == "listed") read_attention_types(values);
    for (const std::string& word : words_) {
      if (word == "full_attention" || word == "sliding_attention" || word == "chunked_attention" ||
          (has_linear_ && word == "linear_attention") ||
          (type.value("indexer", false) && word == "deepseek_sparse_attention"))
        continue;
      values.problem(fmt::format("'layer_types' has '{}': not expanded", word),
                     "attention to all tokens before one, 'sliding_attention' and "
                     "'chunked_attention' are");
      break;
    }
  }

  /// `rotates` as the type's own rule has it, where chunks follow that.
  Layer of(std::int64_t index, bool rotates) const {
    Layer layer;
    if (has_linear_) {
      layer.is_linear = words_.empty() ? linear_every_ > 0 && (index + 1) % linear_every_ != 0
                                       : at(words_, index) == "linear_attention";
      return layer;
    }
    if (rule_.empty() && words_.empty()) return layer;
    if (!words_.empty()) {
      const std::string word = at(words_, index);
      if (word == "sliding_attention") layer.window = size_;
      if (word == "chunked_attention") layer.window = chunk_;
    } else if (rule_ == "chunks") {
      layer.window = rotates ? chunk_ : 0;
    } else if (slides(index, rotates)) {
      layer.window = size_;
    }
    layer.is_chunked = layer.window > 0 && rule_ == "chunks";
    return layer;
  }

 private:
  static std::int64_t period(ConfigValues& values, const Json& type) {
    const std::int64_t usual = type.value("full_every", std::int64_t{0});
    if (usual == 0) return 0;
    // EXAONE's may be a word of a letter for each layer, "LLLG".
    const std::string letters = values.word({"sliding_window_pattern"});
    if (!letters.empty()) return static_cast<std::int64_t>(letters.size());
    const auto said = values.size({"sliding_window_pattern", "_sliding_window_pattern"});
    return said > 0 ? said : usual;
  }
  bool slides(std::int64_t index, bool rotates) const {
    if (rule_ == "all") return true;
    if (rule_ == "from") return index >= from_;
    if (rule_ == "even_below") return index % 2 == 0 && index < from_;
    if (rule_ == "unrotated") return !rotates;
    return period_ > 0 && (index + 1) % period_ != 0;
  }
  /// GPT-Neo's [[["global", "local"], 12]].
  void read_attention_types(ConfigValues& values) {
    const Json* types = values.find({"attention_types"});
    if (types == nullptr || !types->is_array()) return;
    constexpr std::size_t kEnough = 4096;
    for (const Json& one : *types) {
      if (!one.is_array() || one.size() != 2 || !one[0].is_array() ||
          !one[1].is_number_unsigned()) {
        values.problem("'attention_types' is no list of pairs as [[\"global\", \"local\"], 12]");
        return;
      }
      for (std::uint64_t i = 0; i < one[1].get<std::uint64_t>() && words_.size() < kEnough; ++i) {
        for (const Json& word : one[0]) {
          words_.emplace_back(word == "local" ? "sliding_attention" : "full_attention");
        }
        if (one[0].empty()) break;
      }
    }
  }

  std::string rule_;
  std::int64_t size_, chunk_, from_ = 0, period_ = 0, linear_every_ = 0;
  bool has_linear_ = false;
  std::vector<std::string> words_;
};

/// Which layers have an indexer of their own; those between take what it chose (GLM-5).
class Indexed {
 public:
  Indexed(ConfigValues& values, const Architecture& model)
      : any_{model.indexer.keys > 0},
        words_{values.words({"indexer_types"})},
        pattern_{values.word({"index_topk_pattern"})},
        every_{std::max<std::int64_t>(1, values.size({"index_topk_freq"}))},
        from_{values.size({"index_skip_topk_offset"})} {}

  bool of(std::int64_t index) const {
    if (!any_) return false;
    if (!words_.empty()) return at(words_, index) == "full";
    if (!pattern_.empty())
      return pattern_[static_cast<std::size_t>(index) % pattern_.size()] == 'F';
    return std::max<std::int64_t>(index - from_ + 1, 0) % every_ == 0;
  }

 private:
  bool any_;
  std::vector<std::string> words_;
  std::string pattern_;
  std::int64_t every_, from_;
};

class Experts {
 public:
  explicit Experts(ConfigValues& values)
      : without_{values.numbers({"mlp_only_layers"})},
        with_{values.numbers({"moe_layers"})},
        has_list_{values.find({"moe_layers"}) != nullptr},
        sparse_step_{values.size(
            {"decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval"})},
        first_{values.size({"first_k_dense_replace", "moe_layer_start_index"})},
        last_{values.real({"moe_layer_end_index"}, -1)} {
    if (values.is_default("mlp_layer_types")) words_ = values.words({"mlp_layer_types"});
    const Json* frequency = values.find({"moe_layer_freq"});
    if (frequency != nullptr && frequency->is_array()) {
      listed_ = values.numbers({"moe_layer_freq"});
    } else {
      frequency_ = values.size({"moe_layer_freq"});
    }
  }

  bool of(std::int64_t index) const {
    if (has_list_) return std::ranges::find(with_, index) != with_.end();
    if (!words_.empty()) return at(words_, index) == "sparse";
    if (std::ranges::find(without_, index) != without_.end() || index < first_) return false;
    if (last_ >= 0 && static_cast<double>(index) > last_) return false;
    if (!listed_.empty()) return at(listed_, index) != 0;
    if (sparse_step_ > 0) return (index + 1) % sparse_step_ == 0;
    return frequency_ <= 1 || index % frequency_ == 0;
  }

 private:
  std::vector<std::int64_t> without_, with_, listed_;
  std::vector<std::string> words_;
  bool has_list_;
  std::int64_t sparse_step_, first_, frequency_ = 0;
  double last_;
};

}  // namespace

void read_layers(ConfigValues& values, const Json& type, Architecture& model) {
  constexpr std::int64_t kMostLayers = 4096;
  const Windows windows{values, type};
  const Rotation rotation{values, type, model};
  const Indexed indexed{values, model};
  const bool some_experts = model.experts > 0;
  std::optional<Experts> experts;
  if (some_experts) experts.emplace(values);
  std::vector<Layer> kinds;
  for (std::int64_t i = 0; i < std::min(model.layers, kMostLayers); ++i) {
    Layer layer = windows.of(i, rotation.of(i, false, false));
    layer.has_experts = some_experts && experts->of(i);
    layer.indexes = indexed.of(i);
    kinds.push_back(layer);
  }
  const bool any_window = std::ranges::any_of(kinds, [](const Layer& l) { return l.window > 0; });
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    kinds[i].rotates = rotation.of(static_cast<std::int64_t>(i), kinds[i].window > 0, any_window);
  }
  if (kinds.empty()) return;
  if (some_experts && std::ranges::none_of(kinds, &Layer::has_experts)) {
    model.ffn = model.dense_width();
    model.experts = model.top_k = model.shared_ffn = 0;
  }
  const bool are_alike = std::ranges::all_of(kinds, [&](const Layer& l) { return l == kinds[0]; });
  if (are_alike && !kinds[0].is_chunked) {
    model.window = kinds[0].window;
    if (kinds[0] == model.layer(0)) return;
  }
  model.kinds = std::move(kinds);
}

}  // namespace foretrace::training
