"""Model families of transformers, timm and torchvision: configurations with random weights, in sizes that people train. Nothing is downloaded."""

# Causal language models: (name, configuration class, shapes). A shape: what the class calls its sizes; `layers` may be cut. Sources: the models' own
# config.json files, as published.
CAUSAL = [
    ("llama", "LlamaConfig", [
        dict(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
             head_dim=64, tie_word_embeddings=True),
        dict(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4),
        dict(vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=4, num_attention_heads=32)]),
    ("qwen2", "Qwen2Config", [
        dict(vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2,
             tie_word_embeddings=True),
        dict(vocab_size=151936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=14, num_attention_heads=12, num_key_value_heads=2,
             tie_word_embeddings=True)]),
    ("qwen3", "Qwen3Config", [
        dict(vocab_size=151936, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8,
             head_dim=128, tie_word_embeddings=True)]),
    ("mistral", "MistralConfig", [
        dict(vocab_size=32768, hidden_size=4096, intermediate_size=14336, num_hidden_layers=6, num_attention_heads=32, num_key_value_heads=8,
             sliding_window=None)]),
    ("gemma2", "Gemma2Config", [
        dict(vocab_size=256000, hidden_size=2304, intermediate_size=9216, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4,
             head_dim=256)]),
    ("gemma3", "Gemma3TextConfig", [
        dict(vocab_size=262144, hidden_size=1152, intermediate_size=6912, num_hidden_layers=12, num_attention_heads=4, num_key_value_heads=1,
             head_dim=256)]),
    ("gpt2", "GPT2Config", [
        dict(n_embd=768, n_layer=12, n_head=12), dict(n_embd=1024, n_layer=24, n_head=16), dict(n_embd=1280, n_layer=18, n_head=20)]),
    ("gpt_neox", "GPTNeoXConfig", [
        dict(vocab_size=50304, hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16),
        dict(vocab_size=50304, hidden_size=2048, intermediate_size=8192, num_hidden_layers=12, num_attention_heads=8)]),
    ("opt", "OPTConfig", [
        dict(vocab_size=50272, hidden_size=1024, ffn_dim=4096, num_hidden_layers=24, num_attention_heads=16, word_embed_proj_dim=512),
        dict(vocab_size=50272, hidden_size=2048, ffn_dim=8192, num_hidden_layers=12, num_attention_heads=32, word_embed_proj_dim=2048)]),
    ("bloom", "BloomConfig", [dict(vocab_size=250880, hidden_size=1024, n_layer=16, n_head=16)]),
    ("phi", "PhiConfig", [dict(vocab_size=51200, hidden_size=2048, intermediate_size=8192, num_hidden_layers=12, num_attention_heads=32)]),
    ("phi3", "Phi3Config", [
        dict(vocab_size=32064, hidden_size=3072, intermediate_size=8192, num_hidden_layers=8, num_attention_heads=32, pad_token_id=0)]),
    ("falcon", "FalconConfig", [dict(vocab_size=65024, hidden_size=2048, num_hidden_layers=12, num_attention_heads=32)]),
    ("stablelm", "StableLmConfig", [
        dict(vocab_size=100352, hidden_size=2048, intermediate_size=5632, num_hidden_layers=12, num_attention_heads=32, num_key_value_heads=32)]),
    ("olmo2", "Olmo2Config", [dict(vocab_size=100352, hidden_size=2048, intermediate_size=8192, num_hidden_layers=8, num_attention_heads=16)]),
    ("granite", "GraniteConfig", [
        dict(vocab_size=49152, hidden_size=2048, intermediate_size=8192, num_hidden_layers=12, num_attention_heads=32, num_key_value_heads=8)]),
    ("cohere", "CohereConfig", [
        dict(vocab_size=256000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4)]),
]
# Encoders with a classification or a masked-token head.
ENCODERS = [
    ("bert", "BertConfig", "BertForMaskedLM", [dict(), dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)]),
    ("roberta", "RobertaConfig", "RobertaForSequenceClassification", [dict(max_position_embeddings=514)]),
    ("distilbert", "DistilBertConfig", "DistilBertForSequenceClassification", [dict()]),
    ("electra", "ElectraConfig", "ElectraForSequenceClassification", [dict(hidden_size=768, embedding_size=768, intermediate_size=3072,
                                                                          num_attention_heads=12)]),
    ("deberta_v2", "DebertaV2Config", "DebertaV2ForSequenceClassification", [
        dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, relative_attention=True, position_buckets=256,
             norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"], max_relative_positions=-1, position_biased_input=False,
             vocab_size=128100)]),
    ("modernbert", "ModernBertConfig", "ModernBertForMaskedLM", [dict()]),
]
SEQ2SEQ = [
    ("t5", "T5Config", "T5ForConditionalGeneration", [
        dict(d_model=768, d_ff=3072, num_layers=12, num_heads=12, decoder_start_token_id=0), dict(d_model=512, d_ff=2048, num_layers=6, num_heads=8, decoder_start_token_id=0)]),
    ("bart", "BartConfig", "BartForConditionalGeneration", [
        dict(d_model=768, encoder_layers=6, decoder_layers=6, encoder_attention_heads=12, decoder_attention_heads=12, encoder_ffn_dim=3072,
             decoder_ffn_dim=3072)]),
]
TIMM = ["vit_base_patch16_224", "vit_small_patch16_224", "deit_base_patch16_224", "swin_tiny_patch4_window7_224", "convnext_tiny", "convnext_base",
        "efficientnet_b0", "mixer_b16_224", "regnety_032", "beit_base_patch16_224", "resnet50d", "mobilenetv3_large_100"]
TORCHVISION = ["resnet18", "resnet50", "resnet101", "vgg16_bn", "densenet121", "mobilenet_v2", "convnext_small", "vit_b_16", "swin_t", "efficientnet_v2_s",
               "regnet_y_8gf", "shufflenet_v2_x1_0"]
HF_VISION = [
    ("vit", "ViTConfig", "ViTForImageClassification", dict(num_labels=1000)),
    ("dinov2", "Dinov2Config", "Dinov2ForImageClassification", dict(num_labels=1000, image_size=224, patch_size=14)),
]

# Words that classes use for the number of layers.
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "encoder_layers")


def cut(shape, rng):
    """The shape with all of its layers, or half, or a quarter; at least 2."""
    shape = dict(shape)
    for key in LAYERS:
        if key in shape:
            shape[key] = max(2, shape[key] // rng.choice([1, 1, 2, 4]))
            if key == "encoder_layers":
                shape["decoder_layers"] = shape[key]
    return shape
