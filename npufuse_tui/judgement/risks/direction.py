"""training_only, inference_only, no_backward: the operator serves one direction, and the code shows another."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npufuse_tui import schemas
from npufuse_tui.judgement.risks.context import Around
from npufuse_tui.language import Text
from npufuse_tui.model import Risk, Severity

_WITHOUT = Text(
    "{api} has no backward: {what}",
    "{api} 没有反向：{what}",
)
_KEPT_OUT = Text("where gradients are recorded the original runs", "记录梯度时走原代码")
_RAISES = Text("a training step would end in an error", "训练时会报错")
_SILENT = Text(
    "a training step would get no gradient through it, with only a warning", "训练时梯度会在此中断，仅有警告"
)
_TRAINING_ONLY = Text(
    "{api} is documented for training, and {name} on this line is for inference: keep the original there, or take the"
    " inference operator",
    "{api} 的文档限定用于训练，而此行的 {name} 用于推理：推理时请保留原代码，或改用推理算子",
)
_INFERENCE_ONLY = Text(
    "{api} is for inference, and {name} on this line is for training: in a training run nothing changes here",
    "{api} 仅用于推理，而此行的 {name} 用于训练：训练时此处不会有变化",
)
_CACHE = re.compile(r"past_key_values?|use_cache|kv_cache|layer_past|cache_params|cache_position")
_TRAINS = re.compile(
    r"training|gradient_checkpointing|dropout(?:_p|_rate|_prob)?|attention_dropout|attn_dropout|requires_grad"
)


def check(around: Around) -> Iterator[Risk]:
    yield from _backward(around)
    rule = around.rule
    if not rule.inference:
        for decorator in around.decorators():
            if decorator.name.rpartition(".")[2] in ("no_grad", "inference_mode"):
                message = _TRAINING_ONLY.format(api=rule.api, name=decorator.name)
                yield Risk("training_only", Severity.WARNING, message, decorator.line)
                return
        used = around.word(_CACHE)
        if used is not None:
            message = _TRAINING_ONLY.format(api=rule.api, name=used[0])
            yield Risk("training_only", Severity.WARNING, message, used[1])
    elif not rule.training:
        used = around.word(_TRAINS)
        if used is not None:
            message = _INFERENCE_ONLY.format(api=rule.api, name=used[0])
            yield Risk("inference_only", Severity.INFO, message, used[1])


def _backward(around: Around) -> Iterator[Risk]:
    """Asked of the operator itself; an autograd.Function that a rule brings along gives it one."""
    rule = around.rule
    if not around.replacement or any("autograd.Function" in source for source in rule.helpers.values()):
        return
    signature = schemas.signature(rule.api)
    if signature is None or signature.autograd_kind not in ("error_fallback", "torch_default_fallback"):
        return
    if "is_grad_enabled" in around.guard:
        yield Risk("no_backward", Severity.INFO, _WITHOUT.format(api=rule.api, what=_KEPT_OUT), around.line)
        return
    what = _RAISES if signature.autograd_kind == "error_fallback" else _SILENT
    severity = Severity.DANGER if rule.training else Severity.WARNING
    yield Risk("no_backward", severity, _WITHOUT.format(api=rule.api, what=what), around.line)
