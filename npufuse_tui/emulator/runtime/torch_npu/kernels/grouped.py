"""npu_grouped_matmul: many products in one call. No gradient, as in the real one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..registry import kernel
from ..settings import limit, not_emulated
from .limits import dtype_in, named, same_dtype

_NAME = "npu_grouped_matmul"
_MOST_TENSORS = 128
_MOST_GROUPS = 1024
_INNER_LIMIT = 65536
_DTYPES = {1: torch.int8, 5: torch.float16, 6: torch.float32, 15: torch.bfloat16}  # torch's numbers of its dtypes


@kernel("npu_grouped_matmul")
def grouped_matmul(
    x: Sequence[torch.Tensor],
    weight: Sequence[torch.Tensor],
    *,
    bias: Sequence[torch.Tensor] | None = None,
    group_list: torch.Tensor | None = None,
    split_item: int | None = 0,
    group_type: int | None = None,
    group_list_type: int | None = 0,
    act_type: int | None = 0,
    output_dtype: Any = None,
    **others: Any,
) -> list[torch.Tensor]:
    """`x_i @ weight_i + bias_i` for each group.

    `group_type`: -1 none (x and weight are lists of equal length, no `group_list`), 0 rows of x are grouped, 2 the
    reduced dim is grouped (x is (M, K), weight (K, N), the result (groups, M, N)). `group_list`, int64: running totals,
    or with `group_list_type=1` the counts. `split_item` 0 and 1 give a list, 2 and 3 one tensor.
    """
    if group_type is None:
        group_type = _default_group_type()
    if group_type not in (-1, 0, 2):
        raise RuntimeError(f"group_type only supports -1, 0 and 2, but got {group_type}")
    _float_path(x, weight, bias, act_type, others)
    counts = None if group_list is None else _counts(group_list, group_list_type or 0)
    if group_type == -1 and group_list is not None:
        limit(_NAME, "group_list must be None with group_type=-1", "group_type=-1 时 group_list 须为 None")
    if group_type == 2:
        return _over_reduced(x, weight, counts, split_item or 0, output_dtype)
    if group_type == 0:
        if (split_item or 0) not in (2, 3):
            limit(
                _NAME,
                f"split_item is {split_item} with group_type=0; give 2 or 3",
                f"group_type=0 时 split_item 须为 2 或 3，现为 {split_item}",
            )
        if counts is None and len(x) == 1:
            raise RuntimeError(f"{_NAME}: group_list must be given with group_type=0")
    return _products(x, weight, bias, counts, split_item or 0, output_dtype)


@kernel("npu_grouped_matmul.List")
def grouped_matmul_list(
    x: Sequence[torch.Tensor],
    weight: Sequence[torch.Tensor],
    *,
    bias: Sequence[torch.Tensor] | None = None,
    group_list: Sequence[int] | None = None,
    split_item: int | None = 0,
    group_type: int | None = None,
    group_list_type: int | None = 0,
    act_type: int | None = 0,
    output_dtype: Any = None,
    **others: Any,
) -> list[torch.Tensor]:
    """As above, with `group_list` a list of running totals, and no `group_type`."""
    if group_type not in (None, -1):
        limit(
            _NAME,
            f"group_type is {group_type} with a list as group_list; leave it out, or give a tensor",
            f"group_list 为列表时不应给出 group_type（现为 {group_type}）；请去掉，或改用 Tensor",
        )
    _float_path(x, weight, bias, act_type, others)
    counts = None
    if group_list is not None:
        if len(group_list) == 1:
            limit(_NAME, "a group_list of one entry is not taken", "group_list 列表长度不能为 1")
        counts = _differences([int(total) for total in group_list])
    return _products(x, weight, bias, counts, split_item or 0, output_dtype)


def _default_group_type() -> int | None:
    """The default differs between versions: -1 before, none later."""
    from ..settings import schemas

    return -1 if "group_type=-1" in schemas()[_NAME]["default"]["schema"] else None


def _float_path(x: Any, weight: Any, bias: Any, act_type: int | None, others: dict[str, Any]) -> None:
    given = [name for name, value in others.items() if value is not None and name != "tuning_config"]
    if given:
        raise not_emulated(f"{_NAME} with {given[0]}")
    if not x or not weight:
        raise RuntimeError(f"{_NAME}: x and weight must hold at least one tensor")
    if len(x) > _MOST_TENSORS or len(weight) > _MOST_TENSORS:
        limit(
            _NAME,
            f"x has {len(x)} tensors and weight {len(weight)}, and at most {_MOST_TENSORS} are taken; stack them",
            f"x 有 {len(x)} 个张量、weight 有 {len(weight)} 个，至多 {_MOST_TENSORS} 个；请堆叠为一个",
        )
    for tensor in (*x, *weight):
        dtype_in(_NAME, "x and weight", tensor)
        same_dtype(_NAME, "x[0]", x[0], "another of x and weight", tensor)
        if tensor.shape[-1] >= _INNER_LIMIT:
            limit(
                _NAME,
                f"a last dim has {tensor.shape[-1]} elements, and less than {_INNER_LIMIT} is taken",
                f"最后一维有 {tensor.shape[-1]} 个元素，须小于 {_INNER_LIMIT}",
            )
    if bias is not None:
        wanted = torch.float16 if x[0].dtype == torch.float16 else torch.float32
        for tensor in bias:
            if tensor.dtype != wanted:
                limit(
                    _NAME,
                    f"bias is {named(tensor.dtype)}; with {named(x[0].dtype)} x it must be {named(wanted)}",
                    f"bias 的 dtype 为 {named(tensor.dtype)}；x 为 {named(x[0].dtype)} 时须为 {named(wanted)}",
                )
    if act_type:
        limit(
            _NAME,
            f"act_type is {act_type}; an activation is computed for quantised x only",
            f"act_type 为 {act_type}；仅量化场景支持激活",
        )


def _counts(group_list: torch.Tensor, group_list_type: int) -> list[int] | None:
    """Rows of each group; None for a meta tensor, whose content is not known."""
    if group_list_type not in (0, 1):
        raise not_emulated(f"{_NAME} with group_list_type={group_list_type}")
    if group_list.dim() != 1:
        raise RuntimeError(f"{_NAME}: group_list has {group_list.dim()} dims; it must have 1")
    if group_list.dtype != torch.int64:
        limit(
            _NAME,
            f"group_list is {named(group_list.dtype)}; it must be int64",
            f"group_list 的 dtype 为 {named(group_list.dtype)}，须为 int64",
        )
    if group_list_type == 1 and group_list.numel() == 1:
        limit(_NAME, "a group_list of one count is not taken", "group_list_type=1 时 group_list 长度不能为 1")
    if group_list.numel() > _MOST_GROUPS:
        limit(
            _NAME,
            f"group_list has {group_list.numel()} entries, and at most {_MOST_GROUPS} are taken",
            f"group_list 有 {group_list.numel()} 项，至多 {_MOST_GROUPS} 项",
        )
    if group_list.is_meta:
        return None
    values = [int(value) for value in group_list.tolist()]
    counts = _differences(values) if group_list_type == 0 else values
    if any(count < 0 for count in counts):
        kind = "running totals that never fall" if group_list_type == 0 else "counts of at least 0"
        raise RuntimeError(f"{_NAME}: group_list is {values}; with group_list_type={group_list_type} give {kind}")
    return counts


def _differences(totals: list[int]) -> list[int]:
    return [total - before for before, total in zip([0, *totals], totals)]  # noqa: B905 (Python 3.9)


def _cast(output_dtype: Any, default: torch.dtype) -> torch.dtype:
    if output_dtype is None:
        return default
    if isinstance(output_dtype, torch.dtype):
        return output_dtype
    if output_dtype not in _DTYPES:
        raise not_emulated(f"{_NAME} with output_dtype={output_dtype}")
    return _DTYPES[output_dtype]


def _products(
    x: Sequence[torch.Tensor],
    weight: Sequence[torch.Tensor],
    bias: Sequence[torch.Tensor] | None,
    counts: list[int] | None,
    split_item: int,
    output_dtype: Any,
) -> list[torch.Tensor]:
    if split_item not in (0, 1, 2, 3):
        raise RuntimeError(f"{_NAME}: split_item is {split_item}; give 0 or 1 for a list, 2 or 3 for one tensor")
    stacked = len(weight) == 1 and weight[0].dim() == 3
    weights = list(weight[0].unbind(0)) if stacked else list(weight)
    biases: list[torch.Tensor] | None = None
    if bias is not None:
        biases = list(bias[0].unbind(0)) if len(bias) == 1 and bias[0].dim() == 2 else list(bias)
        if len(biases) != len(weights):
            raise RuntimeError(f"{_NAME}: bias has {len(biases)} entries and weight {len(weights)}; give one for each")
    if x[0].is_meta and len(x) == 1 and len(weights) > 1:
        return [x[0].new_empty((x[0].shape[0], weights[0].shape[-1]), dtype=_cast(output_dtype, x[0].dtype))]
    parts = _parts(x, len(weights), counts)
    results = []
    for index, (part, matrix) in enumerate(zip(parts, weights)):  # noqa: B905 (Python 3.9)
        if part.shape[-1] != matrix.shape[-2]:
            raise RuntimeError(
                f"{_NAME}: x has K = {part.shape[-1]} and weight {tuple(matrix.shape)} has K = {matrix.shape[-2]} in "
                f"group {index}; weight is (K, N), transpose it"
            )
        product = part.float() @ matrix.float()
        if biases is not None:
            product = product + biases[index].float()
        results.append(product.to(_cast(output_dtype, x[0].dtype)))
    if split_item in (0, 1):
        return results
    if len({result.shape[-1] for result in results}) > 1:
        raise RuntimeError(f"{_NAME}: the last dims of weight differ, and split_item={split_item} asks for one tensor")
    joined = torch.cat(results, 0)
    rows = sum(part.shape[0] for part in x)
    if joined.shape[0] < rows:  # rows beyond the last group: undefined on the NPU, zero here
        joined = torch.cat((joined, joined.new_zeros(rows - joined.shape[0], joined.shape[1])), 0)
    return [joined]


def _parts(x: Sequence[torch.Tensor], groups: int, counts: list[int] | None) -> list[torch.Tensor]:
    if counts is not None and len(counts) != groups:
        raise RuntimeError(
            f"{_NAME}: group_list has {len(counts)} entries and weight {groups} matrices; they must be as many"
        )
    if len(x) > 1:
        if len(x) != groups:
            raise RuntimeError(f"{_NAME}: x has {len(x)} tensors and weight {groups} matrices; they must be as many")
        if counts is not None and counts != [tensor.shape[0] for tensor in x]:
            rows = [tensor.shape[0] for tensor in x]
            limit(
                _NAME,
                f"group_list says groups of {counts} rows, and x has {rows}",
                f"group_list 表示各组 {counts} 行，而 x 为 {rows} 行",
            )
        return list(x)
    if groups == 1 and counts is None:
        return [x[0]]
    if counts is None:
        raise RuntimeError(
            f"{_NAME}: x is one tensor and weight {groups} matrices; group_list must say which rows go where"
        )
    if sum(counts) != x[0].shape[0]:
        limit(
            _NAME,
            f"the groups have {sum(counts)} rows together and x has {x[0].shape[0]}; they must be as many",
            f"各组共 {sum(counts)} 行，而 x 有 {x[0].shape[0]} 行；二者须相等",
        )
        if sum(counts) > x[0].shape[0]:
            raise RuntimeError(f"{_NAME}: group_list reaches row {sum(counts)} of {x[0].shape[0]}")
    return list(x[0][: sum(counts)].split(counts, 0))


def _over_reduced(
    x: Sequence[torch.Tensor],
    weight: Sequence[torch.Tensor],
    counts: list[int] | None,
    split_item: int,
    output_dtype: Any,
) -> list[torch.Tensor]:
    if len(x) != 1 or len(weight) != 1 or x[0].dim() != 2 or weight[0].dim() != 2:
        raise RuntimeError(f"{_NAME}: with group_type=2 give one 2-D x (M, K) and one 2-D weight (K, N)")
    if split_item not in (2, 3):
        limit(
            _NAME,
            f"split_item is {split_item} with group_type=2; give 2 or 3",
            f"group_type=2 时 split_item 须为 2 或 3，现为 {split_item}",
        )
    if x[0].shape[1] != weight[0].shape[0]:
        raise RuntimeError(
            f"{_NAME}: x has K = {x[0].shape[1]} and weight K = {weight[0].shape[0]}; they must be equal"
        )
    dtype = _cast(output_dtype, x[0].dtype)
    if counts is None:
        raise RuntimeError(f"{_NAME}: group_list must be given with group_type=2")
    if sum(counts) != x[0].shape[1]:
        limit(
            _NAME,
            f"the groups have {sum(counts)} elements together and K is {x[0].shape[1]}; they must be as many",
            f"各组共 {sum(counts)}，而 K 为 {x[0].shape[1]}；二者须相等",
        )
    total = min(sum(counts), x[0].shape[1])
    lefts = x[0][:, :total].float().split(counts, 1)
    rights = weight[0][:total].float().split(counts, 0)
    products = [left @ right for left, right in zip(lefts, rights)]  # noqa: B905 (Python 3.9)
    return [torch.stack(products).to(dtype)]
