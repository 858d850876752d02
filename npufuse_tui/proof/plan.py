"""What a `ProofPlan` must hold so that the executable proof can run it, and how plans cross into the child.

**Sources.** `original` and `fused` are each the source of one `def` (any name; the last `def` of the text is taken;
helpers stand in `setup` or above it). Both take the parameters named by `plan.parameters`, in that order, and both are
compiled with postponed annotations, so annotations and unknown types in them do no harm; decorators do run, so leave
them out. `fused` holds the fused code alone, without the gate. `setup` runs once in the namespace before both: helpers
cut verbatim out of the user's file, the helpers that the rule brings, constants. The namespace is fresh for each
plan and holds `torch`, `nn`, `F`, `math`, `functools`, `torch_npu`, `np`/`numpy` and `einops` with `rearrange`,
`repeat`, `reduce`, `einsum` where installed, everything of `typing`, `dataclass`, `partial`, `SimpleNamespace`, and
from `npufuse_tui.proof.stubs`: `Stub`, `Returns`, `Identity`, `Everywhere`, `HeldNorm`. A name of the user's file that is none of
these is a NameError and the check is then "skipped" with that reason (when it is the original that cannot run) or
"failed" (when only the fused one cannot).

**Values.** `values[i]` is a Python expression for `parameters[i]`. It is evaluated anew for the original, the fused and
the reference run, in the namespace above plus the inputs of the rule's example by their names (a tensor, a number).
So both run with equal state that neither can spoil for the other. Common shapes:

    parameters ("hidden_states", "self")        values ("x", "Stub(weight=weight, variance_epsilon=eps)")
    parameters ("self", "x")                    values ("Stub(gate_proj=Returns(gate), up_proj=Returns(up))", "gate")
    parameters ("query", "attention_mask")      values ("q", "None")
    parameters ("eps", "layer_id", "dim")       values ("eps", "0", "x.shape[-1]")

* `Stub(**attributes)`: stands for `self`, a config, any object. Attributes given are what is given; `training` is False
  unless given; any other attribute is an identity-like module: calling it gives back its first argument unchanged
  (`self.down_proj(y)` → y, `self.dropout(y)` → y). Nested: `Stub(config=Stub(hidden_act="silu"))`.
  `Stub(_methods={"_norm": _norm})`: functions of `setup` whose first parameter is self, bound to the stub.
* `Returns(value, *more, **attributes)`: a callable or module that ignores its arguments and gives back `value`; with
  more values it gives them back in turn, starting again after the last. How `self.gate_proj(x)` becomes the recorded
  or random input `gate` of the pattern: the tensor is the same object in both runs' inputs, so gradients are
  compared on it.
* A parameter that is a module or callable is written the same way: `Returns(gate)`, `F.silu`, `nn.SiLU()`,
  `Identity()`.
* A value may be a list, tuple or dict of these.
* `x_2`, `x_3`: where the example has an input `x` and none of that name, another tensor like it, for regions that hold
  the chain more than once (a query and a key that rotate).

**Guard.** `guard` (may be empty) is an expression over the parameters: the limits that the edit asks for besides its
gate. Where it is false for a case, the edited code would run the original: the case is told so and proves nothing.
A guard that raises fails the case, since it would raise in the person's program.

**What comes back.** The region ends in `return`. A region that is a `return` statement keeps it; one that assigns names
used afterwards ends in `return (a, b)` of the live-out names, in the same order in both. `plan.outputs` counts the
top-level values that are compared: with 1 the returned value (of a returned tuple: its first element only); with n >
1 the first n elements of the tuple; with 0 all of it. Elements may be nested tuples, lists, dicts: their tensors are
compared in order. Elements that are not tensors are compared with `==`. Tensors are compared by shape, dtype and
value; gradients flow into every floating-point input of the example whose pattern parameter is not annotated `Flag`
or `Scalar` (when the example itself sets `requires_grad` on any tensor, into those alone), through all compared
outputs. A rule with `training=False` runs without gradients.

**Cases.** Each shape of `rule.example_for(variant)` × each dtype of the rule × parameter dtype (the same, and float32;
the latter only when the pattern has a `Parameter` or the rule has `free_dtypes`) × layout (contiguous; for two
shapes: "transposed" and "sliced" views of activations), values near zero (to see epsilon), and bfloat16 inside an
autocast block. Cases in which the original itself raises say nothing and are left out; when it raises in all, the
check is "skipped" with the error.

**Not run.** A plan that cannot be made at all says why in `not_run`; the check is then "skipped" with this reason.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from npufuse_tui.model import ProofPlan


def as_json(plan: ProofPlan) -> dict[str, Any]:
    """The plan as the child reads it: plain JSON values, without what is for people."""
    data = asdict(plan)
    del data["not_run"]
    return data


def digest(plan: ProofPlan) -> str:
    """Equal for plans that run the same code on the same inputs, whatever candidate they are of."""
    return hashlib.sha256(json.dumps(as_json(plan), sort_keys=True).encode()).hexdigest()
