"""Tiny configurations of transformers' model types, the models built from them, and inputs for them.

Used by the children of models.py alone. Sizes are small, but such that the fused operators take them: a head has 32
dims, a quarter of which is a rotary dim of 32 bytes in float32.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
import transformers

TINY: dict[str, Any] = {
    "vocab_size": 128, "hidden_size": 128, "d_model": 128, "n_embd": 128, "embed_dim": 128,
    "word_embed_proj_dim": 128, "embedding_size": 128, "embedding_dim": 128, "projection_dim": 128, "dim": 128,
    "intermediate_size": 96, "ffn_dim": 96, "d_ff": 96, "n_inner": 96, "ffn_hidden_size": 96, "hidden_dim": 96,
    "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "shared_intermediate_size": 96, "dense_intermediate_size": 96,
    "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "expert_ffn_hidden_size": 32,
    "num_hidden_layers": 2, "num_layers": 2, "n_layer": 2, "n_layers": 2, "decoder_layers": 2, "encoder_layers": 2,
    "num_decoder_layers": 2, "num_hidden_groups": 1,
    "num_attention_heads": 4, "num_heads": 4, "n_head": 4, "n_heads": 4, "decoder_attention_heads": 4,
    "encoder_attention_heads": 4, "encoder_num_key_value_heads": 4, "decoder_num_key_value_heads": 4,
    "encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 32, "d_kv": 32, "attention_head_dim": 32, "global_head_dim": 32,
    "max_position_embeddings": 64, "n_positions": 64, "max_seq_len": 64, "max_source_positions": 16,
    "max_target_positions": 64, "num_mel_bins": 16,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1,
    "topk_group": 1, "moe_num_experts": 4, "moe_k": 2, "moe_topk": 2, "n_shared_experts": 1,
    "first_k_dense_replace": 1, "top_k_experts": 2, "zero_expert_num": 2,
    "q_lora_rank": 32, "kv_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "v_head_dim": 32,
    "index_n_heads": 2, "index_head_dim": 32, "index_topk": 8,
    "rotary_dim": 16, "sliding_window": 16, "attention_chunk_size": 16,
    "query_pre_attn_scalar": 32, "hidden_size_per_layer_input": 16, "vocab_size_per_layer_input": 128,
    "num_kv_shared_layers": 0, "laurel_rank": 16, "altup_num_inputs": 2,
    "image_size": 32, "patch_size": 8, "num_labels": 4, "relative_attention_num_buckets": 8,
    "state_size": 16, "time_step_rank": 8, "n_groups": 1, "mamba_n_groups": 1, "mamba_d_state": 16,
    "chunk_size": 8, "mamba_chunk_size": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "linear_key_head_dim": 32, "linear_value_head_dim": 32,
    "lru_width": 128, "attention_window_size": 16,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
    "cls_token_id": 1, "sep_token_id": 2,
}  # fmt: skip
"""Attributes of configurations, by the names that they have in public models; a configuration takes those it knows."""

LAYER_LISTS = {"layer_types": "full_attention", "mlp_layer_types": "dense", "layers_block_type": "attention",
               "block_types": "attention", "attention_types": None}  # fmt: skip

SPECIAL: dict[str, dict[str, Any]] = {
    "mamba2": {"num_heads": 8, "head_dim": 32, "expand": 2, "n_groups": 1, "state_size": 16},
    "bamba": {"mamba_n_heads": 8, "mamba_d_head": 32, "attn_layer_indices": [1], "mamba_expand": 2},
    "falcon_h1": {"mamba_n_heads": 8, "mamba_d_head": 32, "mamba_d_ssm": 256, "mamba_expand": 2},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"], "mamba_n_heads": 8, "mamba_d_head": 32, "mamba_expand": 2},
    "zamba2": {
        "mamba_headdim": 32, "n_mamba_heads": 8, "num_mem_blocks": 1, "num_hidden_layers": 2, "attention_head_dim": 64,
        "layers_block_type": ["mamba", "hybrid"], "attention_hidden_size": 256, "mamba_ngroups": 1, "mamba_d_state": 16,
    },
    "zamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "attention_hidden_size": 256, "attention_head_dim": 64,
              "n_mamba_heads": 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1,
              "use_mamba_kernels": False},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 16},
    "albert": {"embedding_size": 64},
    "electra": {"embedding_size": 64},
    "nemotron": {"head_dim": 32},
    "phimoe": {"router_jitter_noise": 0.0, "input_jitter_noise": 0.0},
    "longformer": {"attention_window": 8},
    "esm": {"mask_token_id": 3, "token_dropout": False, "position_embedding_type": "rotary"},
    "gpt_neox": {"rotary_pct": 0.5},
    "t5": {"feed_forward_proj": "gated-gelu"},
    "xglm": {"attention_heads": 4},
    "bart": {}, "recurrent_gemma": {"block_types": ["recurrent", "attention"]},
    "persimmon": {"qk_layernorm": True},
    "wav2vec2": {"conv_dim": [32, 32], "conv_stride": [5, 4], "conv_kernel": [10, 8], "num_feat_extract_layers": 2,
                 "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "mask_time_prob": 0.0,
                 "apply_spec_augment": False},
    "dbrx": {"attn_config": {"kv_n_heads": 2}, "ffn_config": {"ffn_hidden_size": 64, "moe_num_experts": 4,
             "moe_top_k": 2, "hidden_size": 128}},
    "qwen2_vl_text": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 6, 6]}},
    "yolos": {"image_size": [32, 32], "num_detection_tokens": 4},
    "vivit": {"num_frames": 4, "tubelet_size": [2, 8, 8], "video_size": [4, 32, 32]},
}  # fmt: skip
SPECIAL["hubert"] = SPECIAL["unispeech"] = SPECIAL["sew"] = SPECIAL["wav2vec2"]
"""What single types want besides."""

CLASSES = (
    "AutoModelForCausalLM",
    "AutoModelForSeq2SeqLM",
    "AutoModelForSpeechSeq2Seq",
    "AutoModelForMaskedLM",
    "AutoModelForImageClassification",
    "AutoModelForCTC",
    "AutoModel",
)

MOST = 60_000_000
"""Parameters above which a model is not tiny."""

TOKENS = 12


class NotTiny(Exception):
    pass


def tiny(model_type: str) -> Any:
    """The configuration of a model type, made small. Raises what the configuration raises."""
    config = _tiny(transformers.CONFIG_MAPPING[model_type], model_type)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    config.architectures = config.architectures or []
    return config


def _tiny(kind: Any, model_type: str) -> Any:
    known = kind()
    chosen: dict[str, Any] = {
        name: value for name, value in TINY.items() if _may_be_set(known, name) and _is_a_size(getattr(known, name))
    }
    for name, plain in LAYER_LISTS.items():
        if _may_be_set(known, name) and plain:
            kinds = list(dict.fromkeys(getattr(known, name) or []))
            chosen[name] = ((kinds or [plain]) * 2)[:2]
    if hasattr(known, "kv_lora_rank"):  # latent attention has no groups
        chosen["num_key_value_heads"] = chosen["num_attention_heads"]
    for name, value in vars(known).items():
        is_rate = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_rate and ("dropout" in name or "drop_path" in name or name.endswith(("pdrop", "layerdrop"))):
            chosen[name] = type(value)(0)
    if "qk_rope_head_dim" in chosen and "head_dim" in chosen:
        chosen["head_dim"] = chosen["qk_rope_head_dim"]
    rope = getattr(known, "rope_parameters", None)
    if isinstance(rope, dict) and "mrope_section" in rope:
        chosen["rope_parameters"] = {**rope, "mrope_section": [4, 6, 6]}
    for name, sub in (getattr(kind, "sub_configs", None) or {}).items():
        if isinstance(sub, type) and hasattr(sub, "model_type") and getattr(known, name, None) is not None:
            small = _tiny(type(getattr(known, name)), getattr(known, name).model_type)
            chosen[name] = small.to_dict()
    chosen.update(SPECIAL.get(model_type, {}))
    return kind(**chosen)


def _may_be_set(config: Any, name: str) -> bool:
    described = getattr(type(config), getattr(config, "attribute_map", {}).get(name, name), None)
    return hasattr(config, name) and not (isinstance(described, property) and described.fset is None)


def _is_a_size(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def build(model_type: str) -> torch.nn.Module:
    """The model with weights that depend on the seed alone, none of them all ones or zeros. Raises NotTiny, LookupError."""
    config = tiny(model_type)
    for name in CLASSES:
        auto = getattr(transformers, name)
        if type(config) in auto._model_mapping:
            break
    else:
        raise LookupError("no model class of this type")
    with torch.device("meta"):
        count = sum(one.numel() for one in auto.from_config(config, attn_implementation="eager").parameters())
    if count > MOST:
        raise NotTiny(f"{count} parameters though configured to be tiny")
    torch.manual_seed(0)
    model = auto.from_config(config, attn_implementation="eager", dtype=torch.float32)
    noise = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=noise))
    return model.train()


def inputs_of(model: Any) -> dict[str, torch.Tensor]:
    """One batch of two, with padding at the end of the second, and labels where the model takes them."""
    takes = inspect.signature(model.forward).parameters
    config = model.config
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(4, 100, (2, TOKENS), generator=generator)
    main = model.main_input_name
    found: dict[str, Any] = {}
    if "input_ids" in takes and main == "input_ids":
        # padding on the right: on the left it makes rows in which all is masked, whose values nobody defines
        found["input_ids"] = ids
        if "attention_mask" in takes:
            found["attention_mask"] = torch.ones_like(ids)
            found["attention_mask"][1, -3:] = 0
        if "labels" in takes:
            found["labels"] = ids.clone()
        if "decoder_input_ids" in takes:
            found["decoder_input_ids"] = ids.roll(1, 1)
        if "pixel_values" in takes and getattr(config, "vision_config", None) is not None and "return_loss" in takes:
            found["pixel_values"] = _image(config.vision_config, generator)
            found["return_loss"] = True
    elif main == "pixel_values":
        found["pixel_values"] = _image(getattr(config, "vision_config", None) or config, generator)
        if "labels" in takes:
            found["labels"] = torch.tensor([0, 1])
    elif main == "input_features":
        length = 2 * config.max_source_positions
        found["input_features"] = torch.randn(2, config.num_mel_bins, length, generator=generator)
        if "labels" in takes:
            found["labels"] = ids
    elif main == "input_values":
        found["input_values"] = torch.randn(2, 2000, generator=generator)
        if "labels" in takes:
            found["labels"] = ids[:, :4]
    else:
        raise LookupError(f"no inputs are known for {main}")
    return found


def _image(config: Any, generator: torch.Generator) -> torch.Tensor:
    size = config.image_size if isinstance(config.image_size, int) else config.image_size[0]
    channels = getattr(config, "num_channels", 3)
    frames = getattr(config, "num_frames", None)
    shape = (2, frames, channels, size, size) if frames else (2, channels, size, size)
    return torch.randn(shape, generator=generator)
