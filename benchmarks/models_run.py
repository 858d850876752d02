"""Child of models.py: builds tiny models, runs each forward and backward, saves logits, loss and gradients.

    models_run.py DEVICE OUT TYPE...

For each type OUT/TYPE.pt is written and OUT/TYPE.json with the number of calls of each fused operator, or
OUT/TYPE.txt with the reason why it does not run.
"""

from __future__ import annotations

import inspect
import json
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch
import transformers

TINY: dict[str, Any] = {
    "vocab_size": 128, "hidden_size": 64, "d_model": 64, "n_embd": 64, "embed_dim": 64, "word_embed_proj_dim": 64,
    "intermediate_size": 96, "ffn_dim": 96, "d_ff": 96, "n_inner": 96, "ffn_hidden_size": 96,
    "shared_intermediate_size": 96,
    "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "expert_ffn_hidden_size": 32,
    "num_hidden_layers": 2, "num_layers": 2, "n_layer": 2, "decoder_layers": 2, "encoder_layers": 2,
    "num_attention_heads": 4, "num_heads": 4, "n_head": 4, "decoder_attention_heads": 4, "encoder_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "d_kv": 16, "attention_head_dim": 16,
    "max_position_embeddings": 64, "n_positions": 64, "max_seq_len": 64,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1,
    "topk_group": 1, "moe_num_experts": 4, "moe_k": 2, "moe_topk": 2, "n_shared_experts": 1, "first_k_dense_replace": 1,
    "q_lora_rank": 32, "kv_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "v_head_dim": 16,
    "rotary_dim": 8, "mamba_n_heads": 4, "mamba_d_head": 32, "mamba_d_state": 16, "sliding_window": 16,
    "hidden_size_per_layer_input": 16, "vocab_size_per_layer_input": 128, "num_kv_shared_layers": 0,
    "layer_types": None, "mlp_layer_types": None,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
"""Attributes of configurations, by the names that they have in public models; a configuration takes those it knows."""

CLASSES = ("AutoModelForCausalLM", "AutoModelForMaskedLM", "AutoModelForSeq2SeqLM")

SECONDS = 120


class TooSlow(Exception):
    pass


def tiny(model_type: str) -> Any:
    """The configuration of a model type, made small. Raises what the configuration raises."""
    known = transformers.CONFIG_MAPPING[model_type]()
    chosen = {name: value for name, value in TINY.items() if hasattr(known, name)}
    for name in list(chosen):
        held = getattr(type(known), name, None)
        if isinstance(held, property) and held.fset is None:
            del chosen[name]
    if "layer_types" in chosen:
        kinds = list(dict.fromkeys(known.layer_types or []))
        chosen["layer_types"] = ((kinds or ["full_attention"]) * 2)[:2]
    if "mlp_layer_types" in chosen:
        kinds = list(dict.fromkeys(known.mlp_layer_types or []))
        chosen["mlp_layer_types"] = ((kinds or ["dense"]) * 2)[:2]
    if hasattr(known, "kv_lora_rank"):  # latent attention has no groups
        chosen["num_key_value_heads"] = chosen["num_attention_heads"]
    for name in vars(known):
        if "dropout" in name or name.endswith("pdrop"):
            chosen[name] = 0.0
    config = transformers.CONFIG_MAPPING[model_type](**chosen)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    return config


def build(model_type: str) -> torch.nn.Module:
    """The model with weights that depend on the seed alone, none of them all ones or zeros."""
    config = tiny(model_type)
    for name in CLASSES:
        auto = getattr(transformers, name)
        if type(config) in auto._model_mapping:
            torch.manual_seed(0)
            model = auto.from_config(config, attn_implementation="eager", dtype=torch.float32)
            break
    else:
        raise LookupError("no language model of this type")
    noise = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=noise))
    return model.train()


def run(model_type: str, device: str) -> dict[str, torch.Tensor]:
    """Logits, loss and every gradient, on the CPU."""
    model = build(model_type).to(device)
    ids = torch.randint(3, 128, (2, 12), generator=torch.Generator().manual_seed(2))
    inputs: dict[str, Any] = {"input_ids": ids.to(device), "attention_mask": torch.ones_like(ids).to(device)}
    # padding on the right: on the left it makes rows in which all is masked, whose values nobody defines
    inputs["attention_mask"][1, -3:] = 0
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = inputs["input_ids"]
    takes = inspect.signature(model.forward).parameters
    if "use_cache" in takes:
        inputs["use_cache"] = False
    torch.manual_seed(3)
    out = model(**inputs, labels=ids.to(device))
    out.loss.backward()
    kept = {"logits": out.logits.detach().cpu(), "loss": out.loss.detach().cpu()}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            kept[f"gradient of {name}"] = parameter.grad.detach().cpu()
    return kept


def count_calls(counts: Counter[str]) -> None:
    """Count the calls of fused operators from here on."""
    import torch_npu

    def counted(name: str, function: Any) -> Any:
        def call(*positional: Any, **named: Any) -> Any:
            counts[name] += 1
            return function(*positional, **named)

        return call

    for name in dir(torch_npu):
        if name.startswith("npu_"):
            setattr(torch_npu, name, counted(name, getattr(torch_npu, name)))


def stop(*_: object) -> None:
    raise TooSlow(f"did not end in {SECONDS} s")


def main() -> None:
    device, out = sys.argv[1], Path(sys.argv[2])
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, stop)
    counts: Counter[str] = Counter()
    if device == "npu":
        count_calls(counts)
    for model_type in sys.argv[3:]:
        (out / "running").write_text(model_type)
        signal.alarm(SECONDS)
        counts.clear()
        try:
            torch.save(run(model_type, device), out / f"{model_type}.pt")
            (out / f"{model_type}.json").write_text(json.dumps(counts))
        except Exception as error:
            line = (str(error).strip().splitlines() or [""])[0]
            (out / f"{model_type}.txt").write_text(f"{type(error).__name__}: {line}"[:300])
        finally:
            signal.alarm(0)
    (out / "running").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
