"""Child of models.py: builds tiny models, runs each, and keeps or compares what came out.

    models_child.py keep FOLDER SECONDS TYPE...                  # the untouched package, on the CPU
    models_child.py compare FOLDER OUT SECONDS TYPE:KEY...       # the edited one, on the emulated NPU

`keep` writes FOLDER/TYPE.pt, or FOLDER/TYPE.txt with the reason why the type does not run. `compare` writes
OUT/KEY.json for each type, all of which FOLDER has. `running` in the folder written to names the type at work.
"""

from __future__ import annotations

import faulthandler
import inspect
import json
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from models_tiny import TOKENS, build, inputs_of

SAME = 1e-6
"""A gradient that differs by less than this part of all gradients together is rounding, whatever its direction."""


class TooSlow(Exception):
    pass


def run(model_type: str, device: str) -> dict[str, Any]:
    """Logits, loss and every gradient of a training step; logits of inference: whole, left padded, and with a cache."""
    model: Any = build(model_type).to(device)
    inputs = {
        name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in inputs_of(model).items()
    }
    if "use_cache" in inspect.signature(model.forward).parameters:
        inputs["use_cache"] = False
    torch.manual_seed(3)
    out = model(**inputs)
    loss = out.loss if getattr(out, "loss", None) is not None else _loss_of(_logits(out))
    loss.backward()
    kept: dict[str, Any] = {
        "class": type(model).__name__,
        "logits": _logits(out).detach().cpu(),
        "loss": loss.detach().cpu(),
    }
    gradients = {
        name: parameter.grad.detach().cpu()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    kept["gradients"] = gradients
    model.eval()
    with torch.no_grad():
        kept["inference"] = _logits(model(**inputs)).cpu()
        if type(model).__name__.endswith("CausalLM") or type(model).__name__.endswith("LMHeadModel"):
            ids = inputs["input_ids"]
            for name, function in (("left padded", _left_padded), ("with a cache", _with_a_cache)):
                try:
                    kept[name] = function(model, ids).cpu()
                except Exception as error:
                    kept[name] = f"{type(error).__name__}: {error}"[:300]
    return kept


def _left_padded(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Logits of the positions that are not padding; what a row of nothing but padding gives is nobody's business."""
    mask = torch.ones_like(ids)
    mask[1, :4] = 0
    logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
    return torch.cat([logits[0], logits[1, 4:]])


def _with_a_cache(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Logits of a prompt and of two tokens more, one at a time."""
    first = TOKENS - 2
    out = model(input_ids=ids[:, :first], use_cache=True)
    found = [out.logits]
    for place in range(first, TOKENS):
        out = model(input_ids=ids[:, place : place + 1], past_key_values=out.past_key_values, use_cache=True)
        found.append(out.logits)
    return torch.cat(found, dim=1)


def _logits(out: Any) -> torch.Tensor:
    for name in ("logits", "logits_per_image", "last_hidden_state", "prediction_logits"):
        value = getattr(out, name, None)
        if isinstance(value, torch.Tensor):
            return value
    raise LookupError(f"nothing to compare in {type(out).__name__}")


def _loss_of(states: torch.Tensor) -> torch.Tensor:
    weights = torch.randn(states.shape, generator=torch.Generator().manual_seed(4))
    return (states * weights.to(states.device)).mean()


def cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    if one.shape != other.shape:
        return -1.0
    one, other = one.double().flatten(), other.double().flatten()
    if torch.equal(one, other):
        return 1.0
    return float(torch.nn.functional.cosine_similarity(one, other, dim=0, eps=0.0))


def compared(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What differs between the two runs."""
    told: dict[str, Any] = {"class": one["class"], "logits": cosine(one["logits"], other["logits"])}
    # a loss that is a sum over a batch is large, and rounds as large numbers do
    told["loss"] = abs(float(one["loss"] - other["loss"])) / max(1.0, abs(float(one["loss"])))
    told["inference"] = {}
    for name in ("inference", "left padded", "with a cache"):
        if isinstance(one.get(name), torch.Tensor):
            fused = other[name]
            told["inference"][name] = cosine(one[name], fused) if isinstance(fused, torch.Tensor) else fused
    told.update(_gradients(one["gradients"], other["gradients"]))
    return told


def _gradients(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> dict[str, Any]:
    whole = float(sum(value.double().pow(2).sum() for value in ours.values())) ** 0.5
    worst, name_of_worst, noise = 1.0, "", 0
    for name in sorted(set(ours) | set(theirs)):
        one, other = ours.get(name), theirs.get(name)
        one = torch.zeros_like(other) if one is None else one
        other = torch.zeros_like(one) if other is None else other
        if not bool(torch.isfinite(other).all()) or one.shape != other.shape:
            return {"gradients": len(ours), "gradient": -1.0, "worst": name, "noise": noise}
        if float((one.double() - other.double()).norm()) <= SAME * whole:
            noise += 1
            continue
        found = cosine(one, other)
        if not found >= worst:
            worst, name_of_worst = found, name
    return {"gradients": len(ours), "gradient": worst, "worst": name_of_worst, "noise": noise}


def each(types: list[str], folder: Path, seconds: int, work: Callable[[str], None]) -> None:
    """Run the types one by one; the reason why one fails is told by `work` raising."""

    def stop(*_: object) -> None:
        raise TooSlow(f"did not end in {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    for model_type in types:
        (folder / "running").write_text(model_type)
        faulthandler.dump_traceback_later(seconds + 30, exit=True)
        signal.alarm(seconds)
        try:
            work(model_type)
        finally:
            signal.alarm(0)
            faulthandler.cancel_dump_traceback_later()
    (folder / "running").unlink(missing_ok=True)


def keep(folder: Path) -> Callable[[str], None]:
    def work(model_type: str) -> None:
        try:
            kept = run(model_type, "cpu")
            numbers = [kept["logits"], kept["loss"], *kept["gradients"].values()]
            if not all(bool(torch.isfinite(one).all()) for one in numbers):
                raise ArithmeticError("the untouched model gives inf or nan with these tiny sizes")
            torch.save(kept, folder / f"{model_type}.pt")
        except Exception as error:
            (folder / f"{model_type}.txt").write_text(_said(error))

    return work


def compare(folder: Path, out: Path) -> Callable[[str], None]:
    from torch_npu import record  # the counts that the emulator's log ends with

    def work(named: str) -> None:
        model_type, key = named.split(":")
        told: dict[str, Any] = {"type": model_type}
        record.calls.clear()
        try:
            other = run(model_type, "npu")
            told |= compared(torch.load(folder / f"{model_type}.pt", weights_only=True), other)
        except Exception as error:
            told["error"] = _said(error)
            told["where"] = [
                f"{Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)
            ][-6:]
        told["calls"] = dict(record.calls)
        (out / f"{key}.json").write_text(json.dumps(told))

    return work


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]


def main() -> None:
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    what, folder = sys.argv[1], Path(sys.argv[2])
    if what == "keep":
        each(sys.argv[4:], folder, int(sys.argv[3]), keep(folder))
    else:
        out = Path(sys.argv[3])
        each(sys.argv[5:], out, int(sys.argv[4]), compare(folder, out))


if __name__ == "__main__":
    main()
