"""One call of npu_fusion_attention: checked step by step against what is documented, then run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..settings import caution, limit, not_emulated
from .attention_core import (
    Scores,
    attend,
    band,
    causal,
    check_compressed,
    from_bnsd,
    hidden_row_limit,
    lengths,
    to_bnsd,
)
from .limits import dtype_in, named, same_dtype

LAYOUTS = {"BSH": 3, "SBH": 3, "BSND": 4, "BNSD": 4, "TND": 3}


class FusionCall:
    """Made of the tensors, then told of the mask, the extras and the lengths, in this order; `run` computes."""

    def __init__(
        self, operator: str, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, head_num: int, layout: str
    ) -> None:
        self.operator, self.layout = operator, layout
        if layout not in LAYOUTS:
            raise RuntimeError(f"{operator}: input_layout is {layout!r}; give one of {', '.join(LAYOUTS)}")
        for name, tensor in (("query", query), ("key", key), ("value", value)):
            dtype_in(operator, name, tensor)
            same_dtype(operator, "query", query, name, tensor)
            if tensor.dim() != LAYOUTS[layout]:
                raise RuntimeError(
                    f"{operator}: {name} has {tensor.dim()} dims, and layout {layout} has {LAYOUTS[layout]}"
                )
        if head_num <= 0:
            raise RuntimeError(f"{operator}: head_num is {head_num}; give the number of query's heads")
        self.query, self.key, self.value, self.heads = query, key, value, head_num
        self._shapes()

    def _shapes(self) -> None:
        operator, layout, query, key, value = self.operator, self.layout, self.query, self.key, self.value
        if layout in ("BSH", "SBH"):
            if query.shape[-1] % self.heads:
                raise RuntimeError(f"{operator}: H = {query.shape[-1]} does not divide into {self.heads} heads")
            width = query.shape[-1] // self.heads
            if width == 0 or key.shape[-1] % width:
                raise RuntimeError(f"{operator}: key's H = {key.shape[-1]} is no multiple of the head dim {width}")
            self.groups = key.shape[-1] // width
            if self.groups == 0 or value.shape[-1] % self.groups:
                raise RuntimeError(
                    f"{operator}: value's H = {value.shape[-1]} does not divide into {self.groups} heads"
                )
            value_width = value.shape[-1] // self.groups
        else:
            at = {"BSND": 2, "BNSD": 1, "TND": 1}[layout]
            if query.shape[at] != self.heads:
                raise RuntimeError(
                    f"{operator}: head_num is {self.heads} and query {tuple(query.shape)} has {query.shape[at]} heads "
                    f"in layout {layout}; is the layout the right one?"
                )
            self.groups, width, value_width = key.shape[at], query.shape[-1], value.shape[-1]
            if key.shape[-1] != width:
                raise RuntimeError(
                    f"{operator}: query's head dim is {width} and key's {key.shape[-1]}; they must be equal"
                )
            if value.shape[at] != self.groups:
                raise RuntimeError(f"{operator}: key has {self.groups} heads and value {value.shape[at]}")
        if self.groups == 0 or self.heads % self.groups:
            raise RuntimeError(f"{operator}: {self.heads} heads of query are no multiple of key's {self.groups}")
        if value_width > width:
            limit(
                operator,
                f"value's head dim is {value_width}, more than query's {width}",
                f"value 的 head dim {value_width} 大于 query 的 {width}",
            )
        if width > 768:
            limit(operator, f"the head dim is {width}, and at most 768 is taken", f"head dim 为 {width}，至多 768")
        if self.heads > 256:
            limit(
                operator,
                f"query has {self.heads} heads, and at most 256 are taken",
                f"query 有 {self.heads} 个头，至多 256",
            )
        batch_at = {"BSH": 0, "SBH": 1, "BSND": 0, "BNSD": 0}.get(layout)
        if batch_at is not None and not query.shape[batch_at] == key.shape[batch_at] == value.shape[batch_at]:
            raise RuntimeError(f"{operator}: the batches of query, key and value differ")
        length_at = {"BSH": 1, "SBH": 0, "BSND": 1, "BNSD": 2, "TND": 0}[layout]
        if key.shape[length_at] != value.shape[length_at]:
            raise RuntimeError(
                f"{operator}: key is {key.shape[length_at]} long and value {value.shape[length_at]}; they must be equal"
            )

    def sparse(self, mode: int, before: int, after: int, inner_precise: int, prefix: Sequence[int] | None) -> None:
        if not 0 <= mode <= 8:
            raise RuntimeError(f"{self.operator}: sparse_mode is {mode}; give one from 0 to 8")
        if mode in (7, 8) and self.layout != "TND":
            raise RuntimeError(f"{self.operator}: sparse_mode={mode} is for layout TND only")
        if mode == 5 and self.layout == "TND":
            raise RuntimeError(f"{self.operator}: sparse_mode=5 is not for layout TND")
        self.mode, self.before, self.after = mode, before, after
        self.zeros = inner_precise >= 2
        self.prefix = None if prefix is None else [int(length) for length in prefix]

    def extras(
        self,
        pse: torch.Tensor | None,
        padding_mask: torch.Tensor | None,
        mask: torch.Tensor | None,
        sink: torch.Tensor | None,
        dropout_mask: torch.Tensor | None,
        softmax_layout: str,
        pse_scaled: bool = True,
    ) -> None:
        operator = self.operator
        if padding_mask is not None:
            limit(
                operator, "padding_mask is not taken; put it into atten_mask", "不支持 padding_mask；请并入 atten_mask"
            )
        if dropout_mask is not None:
            raise not_emulated(f"{operator} with dropout_mask")
        if softmax_layout not in ("", "TND"):
            raise RuntimeError(f'{operator}: softmax_layout is {softmax_layout!r}; give "" or "TND"')
        if mask is not None and mask.dtype not in (torch.bool, torch.uint8):
            raise RuntimeError(
                f"{operator}: atten_mask is {named(mask.dtype)}; it must be bool or uint8, True where masked "
                "(for an additive mask: mask < 0)"
            )
        if mask is None and self.mode:
            caution(
                operator,
                f"sparse_mode={self.mode} does nothing without atten_mask: every position sees every other",
                f"未传 atten_mask 时 sparse_mode={self.mode} 不生效：所有位置互相可见",
            )
        if pse is not None:
            same_dtype(operator, "query", self.query, "pse", pse)
            if self.mode in (7, 8):
                limit(operator, f"pse is not taken with sparse_mode={self.mode}", f"sparse_mode={self.mode} 不支持 pse")
            if operator != "npu_fusion_attention_v2":
                caution(
                    operator,
                    "the documentation says both scale * (pse + q k) and scale * q k + pse; the first is emulated: "
                    "check on an NPU",
                    "文档对 pse 的两种写法（scale*(pse+qk) 与 scale*qk+pse）相互矛盾；此处按前者模拟，请在 NPU 上核对",
                )
        if sink is not None and tuple(sink.shape) != (self.heads,):
            raise RuntimeError(f"{operator}: sink is {tuple(sink.shape)}; it must be ({self.heads},)")
        if sink is not None and sink.dtype != torch.float32:
            limit(
                operator,
                f"sink is {named(sink.dtype)}; it must be float32",
                f"sink 为 {named(sink.dtype)}，须为 float32",
            )
        self.pse, self.pse_scaled, self.mask, self.sink = pse, pse_scaled, mask, sink

    def sequences(self, query: Sequence[int] | None, key: Sequence[int] | None) -> None:
        if self.layout != "TND":
            self.query_lengths = self.key_lengths = None
            return
        self.query_lengths = lengths(self.operator, "actual_seq_qlen", query, self.query.shape[0])
        self.key_lengths = lengths(self.operator, "actual_seq_kvlen", key, self.key.shape[0])
        if len(self.query_lengths) != len(self.key_lengths):
            raise RuntimeError(
                f"{self.operator}: actual_seq_qlen has {len(self.query_lengths)} entries and actual_seq_kvlen "
                f"{len(self.key_lengths)}; they must be as many"
            )

    def run(
        self, scale: float, keep_prob: float, seed: int, offset: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int, int]:
        if not 0.0 < keep_prob <= 1.0:
            raise RuntimeError(f"{self.operator}: keep_prob is {keep_prob}; give one above 0 and at most 1")
        generator, drawn = None, 0
        if keep_prob < 1.0 and not self.query.is_meta:
            drawn = seed or int(torch.randint(1, 2**31 - 1, (1,)).item())
            generator = torch.Generator().manual_seed(drawn + offset)
        if self.layout == "TND":
            out, maxima, sums, length = self._packed(scale, keep_prob, generator)
        else:
            query, key, value = (
                to_bnsd(tensor, self.layout, heads)
                for tensor, heads in ((self.query, self.heads), (self.key, self.groups), (self.value, self.groups))
            )
            scores = self._scores(query, key, scale, keep_prob, generator, 0, 1, self.mask)
            result, maxima, sums = attend(query, key, value, scores)
            out = from_bnsd(result.to(self.query.dtype), self.layout)
            length = query.shape[0] * self.heads * query.shape[2] * key.shape[2]
        maxima, sums = (figure.unsqueeze(-1).expand(*figure.shape, 8).contiguous() for figure in (maxima, sums))
        return out, maxima, sums, drawn, length if keep_prob < 1.0 else 0

    def _packed(
        self, scale: float, keep_prob: float, generator: torch.Generator | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
        assert self.query_lengths is not None and self.key_lengths is not None
        outs, maxima, sums = [], [], []
        at_query = at_key = length = 0
        count = len(self.query_lengths)
        last = max((index for index, rows in enumerate(self.query_lengths) if rows), default=0)
        for index, (rows, columns) in enumerate(zip(self.query_lengths, self.key_lengths)):  # noqa: B905 (Python 3.9)
            query = self.query[at_query : at_query + rows].transpose(0, 1).unsqueeze(0)
            key, value = (
                tensor[at_key : at_key + columns].transpose(0, 1).unsqueeze(0) for tensor in (self.key, self.value)
            )
            mask = self.mask
            if mask is not None and self.mode in (0, 1):
                if mask.dim() != 2:
                    limit(self.operator, "atten_mask of TND has 2 dims", "TND 布局的 atten_mask 须为 2 维")
                mask = mask[..., :rows, :columns]
            scores = self._scores(query, key, scale, keep_prob, generator, index, count, mask, last=last)
            result, largest, total = attend(query, key, value, scores)
            outs.append(result.squeeze(0).transpose(0, 1).to(self.query.dtype))
            maxima.append(largest.squeeze(0).t())
            sums.append(total.squeeze(0).t())
            at_query, at_key = at_query + rows, at_key + columns
            length += self.heads * rows * columns
        rest = self.query.shape[0] - at_query
        if rest:
            outs.append(self.query.new_zeros(rest, self.heads, self.value.shape[-1]))
            maxima.append(maxima[0].new_zeros(rest, self.heads))
            sums.append(sums[0].new_zeros(rest, self.heads))
        return torch.cat(outs), torch.cat(maxima), torch.cat(sums), length

    def _scores(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        scale: float,
        keep_prob: float,
        generator: torch.Generator | None,
        index: int,
        count: int,
        mask: torch.Tensor | None,
        last: int = 0,
    ) -> Scores:
        rows, columns = query.shape[2], key.shape[2]
        hidden, known = self._hidden(mask, query.shape[0], rows, columns, index, last, query.device)
        zeros = self.zeros or known
        if hidden is not None and not zeros:
            hidden_row_limit(self.operator, hidden)
        return Scores(
            scale=scale,
            hidden=hidden,
            bias=self._bias(query.shape[0], rows, columns),
            bias_scaled=self.pse_scaled,
            sink=self.sink,
            keep_prob=keep_prob,
            generator=generator,
            zero_hidden_rows=zeros,
        )

    def _hidden(
        self, mask: torch.Tensor | None, batch: int, rows: int, columns: int, index: int, last: int, device: Any
    ) -> tuple[torch.Tensor | None, bool]:
        """What is masked, and whether the operator itself can tell that a row wholly is."""
        if mask is None:
            return None, False
        corner = columns - rows
        if self.mode in (0, 1, 5):
            shape = _mask_shape(self.operator, mask, batch, self.heads, rows, columns)
            hidden = mask.bool().reshape(shape)
            if self.mode == 0 and (self.before < rows or self.after < columns):
                beyond = band(rows, columns, self.before, self.after, 0, device)
                if not mask.is_meta and bool((beyond & ~hidden).any()):
                    limit(
                        self.operator,
                        "atten_mask shows elements that pre_tockens and next_tockens hide; they must agree",
                        "atten_mask 与 pre_tockens、next_tockens 的范围不一致",
                    )
                hidden = hidden | beyond
            return hidden, False
        if self.mode == 6:
            return self._prefixed(mask, batch, rows, columns, index, device), True
        check_compressed(self.operator, mask, self.mode)
        if self.mode == 2 or (self.mode == 8 and index):
            return causal(rows, columns, 0, device), True
        if self.mode == 3 or (self.mode == 7 and index != last):
            return causal(rows, columns, corner, device), True
        return band(rows, columns, self.before, self.after, corner, device), True

    def _prefixed(
        self, mask: torch.Tensor, batch: int, rows: int, columns: int, index: int, device: Any
    ) -> torch.Tensor:
        if tuple(mask.shape[-2:]) != (3072, 2048):
            limit(
                self.operator,
                f"atten_mask is {tuple(mask.shape)} with sparse_mode=6; it must be (3072, 2048)",
                f"sparse_mode=6 时 atten_mask 形状为 {tuple(mask.shape)}，须为 (3072, 2048)",
            )
        wanted = batch if self.layout != "TND" else len(self.query_lengths or [])
        if self.prefix is None or len(self.prefix) != wanted:
            raise RuntimeError(f"{self.operator}: prefix must have {wanted} entries with sparse_mode=6")
        behind = causal(rows, columns, columns - rows, device)
        own = self.prefix[index : index + 1] if self.layout == "TND" else self.prefix
        lengths_ = torch.tensor(own, device=device).view(-1, 1, 1, 1)
        return behind & (torch.arange(columns, device=device) >= lengths_)

    def _bias(self, batch: int, rows: int, columns: int) -> torch.Tensor | None:
        if self.pse is None:
            return None
        allowed = {(b, self.heads, r, columns) for b in (1, batch) for r in (1, rows)}
        if tuple(self.pse.shape) not in allowed:
            if self.pse.dim() == 4 and self.pse.shape[2] == 1024 and rows > 1024:
                raise not_emulated(f"{self.operator} with a compressed pse")
            raise RuntimeError(
                f"{self.operator}: pse is {tuple(self.pse.shape)}; give (B or 1, {self.heads}, {rows}, {columns})"
            )
        return self.pse


def _mask_shape(operator: str, mask: torch.Tensor, batch: int, heads: int, rows: int, columns: int) -> tuple[int, ...]:
    """The mask's shape as four dims. Nothing but a first or second dim of 1 is broadcast."""
    shape = tuple(mask.shape)
    if len(shape) == 2:
        full = (1, 1, *shape)
    elif len(shape) == 4:
        full = shape
    else:
        full = (shape[0], 1, *shape[1:]) if len(shape) == 3 else (0, 0, 0, 0)
        limit(
            operator,
            f"atten_mask has {len(shape)} dims; give (B or 1, N or 1, Sq, Skv) or (Sq, Skv)",
            f"atten_mask 有 {len(shape)} 维；须为 (B 或 1, N 或 1, Sq, Skv) 或 (Sq, Skv)",
        )
    allowed = {(batch, heads, rows, columns), (batch, 1, rows, columns), (1, 1, rows, columns)}
    if full not in allowed:
        limit(
            operator,
            f"atten_mask is {shape}; with B = {batch}, N = {heads}, Sq = {rows}, Skv = {columns} give BNSS, B1SS, "
            "11SS or SS: nothing else is broadcast, expand it",
            f"atten_mask 形状为 {shape}；B = {batch}、N = {heads}、Sq = {rows}、Skv = {columns} 时须为 BNSS、B1SS、"
            "11SS 或 SS，其余不会广播，请先 expand",
        )
    return full
