"""What a family's configuration is called, and the sizes that a style is learned from."""

# L layers, H hidden, N heads, K key and value heads, D their width, F feed-forward, V vocabulary, B sequences, S tokens of each
LLAMA = {"L": "num_hidden_layers", "H": "hidden_size", "N": "num_attention_heads", "K": "num_key_value_heads", "D": "head_dim",
         "F": "intermediate_size", "V": "vocab_size"}
FAMILIES = {
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen3": LLAMA,
    "gpt2": {"L": "n_layer", "H": "n_embd", "N": "n_head", "F": "n_inner", "V": "vocab_size", "P": "n_positions"},
    "gpt_neox": {"L": "num_hidden_layers", "H": "hidden_size", "N": "num_attention_heads", "F": "intermediate_size", "V": "vocab_size"},
}
OTHERS = {"gpt2": {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}, "mistral": {"sliding_window": None}}  # no dropout; as Mistral 7B since its version 0.2
TIED = {"gpt2": True}


# What a model of the family is beside its sizes, as scenarios/architecture says it, where that is not a Llama's.
SILU = {"activation": "silu"}
GPT = {"gated": False, "rms_norm": False, "qkv_bias": True, "output_bias": True, "mlp_bias": True, "joined_qkv": True}
TRAITS = {"llama": SILU, "mistral": SILU, "qwen3": {**SILU, "qk_norm": "head"}, "gpt2": {**GPT, "activation": "gelu_new", "tied": True, "rotary": False},
          "gpt_neox": {**GPT, "activation": "gelu", "rotary_share": 0.25}}


def config_of(family, sizes):
    made = {name: sizes[symbol] for symbol, name in FAMILIES[family].items()}
    if "max_position_embeddings" not in made and "n_positions" not in made:
        made["max_position_embeddings"] = 32768
    return {**made, **OTHERS.get(family, {}), "tie_word_embeddings": TIED.get(family, False)}


def point(text, family):
    """"B=2 S=1024 ..." as sizes; families whose heads have no width of their own have hidden / heads."""
    sizes = {key: int(value) for key, value in (one.split("=") for one in text.split())}
    if "D" not in FAMILIES[family]:
        sizes["K"] = sizes["N"] = sizes["H"] // sizes["D"]
    if "P" not in FAMILIES[family]:
        del sizes["P"]
    return sizes


# No two sizes grow alike, so that a number has one product of symbols only.
POINTS = (
    "B=2 S=1024 H=2048 N=16 K=4 D=128 F=5632 V=32000 P=2048",
    "B=9 S=256 H=1024 N=8 K=4 D=64 F=2816 V=50304 P=3072",
    "B=4 S=1536 H=3072 N=16 K=8 D=128 F=8192 V=128256 P=4096",
    "B=3 S=3072 H=1536 N=12 K=2 D=128 F=4608 V=33024 P=5120",
    "B=8 S=768 H=1280 N=20 K=5 D=64 F=3584 V=49152 P=1024",
    "B=5 S=1280 H=4096 N=32 K=16 D=128 F=14336 V=64000 P=6144",
    "B=6 S=512 H=1792 N=14 K=7 D=64 F=4864 V=151936 P=8192",
    "B=5 S=640 H=1152 N=9 K=3 D=64 F=3200 V=50257 P=2560",
    "B=1 S=4096 H=2304 N=18 K=9 D=128 F=6144 V=24576 P=7168",
    "B=1 S=1664 H=1408 N=11 K=11 D=128 F=3840 V=102400 P=3584",
)
