"""`kernel_details.csv` of the Ascend PyTorch profiler, read into one form whatever wrote it.

Columns come and go with version and level, and some were renamed: they are read by name, never by place. Cells can be
`N/A`, padded with tabs, or empty.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from npufuse_tui.errors import WrongInput
from npufuse_tui.language import Text

if TYPE_CHECKING:
    import pandas as pd

KERNELS = "kernel_details.csv"
OPERATORS = "operator_details.csv"

# Our name: the names in the files, newest first. Units are microseconds and shares.
COLUMNS: dict[str, tuple[str, ...]] = {
    "step": ("Step Id", "Step ID"),
    "device": ("Device_id", "Device ID", "Device Id"),
    "stream": ("Stream ID", "Stream Id"),
    "name": ("Name", "Op Name"),
    "type": ("Type", "OP Type"),
    "core": ("Accelerator Core", "Task Type"),
    "start": ("Start Time(us)", "Task Start Time(us)"),
    "duration": ("Duration(us)", "Task Duration(us)"),
    "wait": ("Wait Time(us)", "Task Wait Time(us)"),
    "blocks": ("Block Num", "Block Dim"),
    "input_shapes": ("Input Shapes",),
    "input_dtypes": ("Input Data Types",),
    "output_shapes": ("Output Shapes",),
    "mac": ("aic_mac_ratio", "mac_ratio"),
    "aic_mte2": ("aic_mte2_ratio",),
    "vec": ("aiv_vec_ratio", "vec_ratio"),
    "aiv_mte2": ("aiv_mte2_ratio", "mte2_ratio"),
    "aiv_mte3": ("aiv_mte3_ratio", "mte3_ratio"),
}
TEXT = ("name", "type", "core", "input_shapes", "input_dtypes", "output_shapes", "stream", "device", "step")
NEEDED = ("duration",)
_NOTHING = {"", "n/a", "na", "nan", "none", "-"}


def find(path: Path, name: str = KERNELS) -> Path:
    """The file called `name` at a path: itself, or the newest under a folder. Raises WrongInput for none."""
    if path.is_file():
        return path
    if not path.exists():
        raise WrongInput(
            Text(
                "{path} does not exist; give a kernel_details.csv or the profiler's output folder",
                "{path} 不存在；请给出 kernel_details.csv 或 profiler 的输出目录",
            ).format(path=path)
        )
    found = sorted(path.rglob(name), key=lambda one: (one.stat().st_mtime, str(one)))
    if not found:
        raise WrongInput(
            Text(
                "no {name} under {path}; a profile is written to a folder that ends in _ascend_pt, with the file in "
                "ASCEND_PROFILER_OUTPUT",
                "{path} 下没有 {name}；采集结果在以 _ascend_pt 结尾的目录里，文件位于其 ASCEND_PROFILER_OUTPUT 中",
            ).format(name=name, path=path)
        )
    return found[-1]


def read(path: Path) -> pd.DataFrame:
    """The kernels of a profile, in the order in which they started.

    Columns are the keys of `COLUMNS`, all of them; what the file lacks is empty text or NaN. `start` counts from the
    first kernel. Rows without a duration are left out. Raises WrongInput for a file that is no such table.
    """
    import pandas as pd

    raw = read_table(find(path), [one for names in COLUMNS.values() for one in names])
    frame = pd.DataFrame(index=raw.index)
    for ours, theirs in COLUMNS.items():
        column = next((raw[_plain(one)] for one in theirs if _plain(one) in raw.columns), None)
        if column is None:
            if ours in NEEDED or (ours == "type" and _plain("Name") not in raw.columns):
                raise _no_column(path, theirs, list(raw.columns))
            frame[ours] = "" if ours in TEXT else float("nan")
        elif ours == "start":
            frame[ours] = _times(column)
        else:
            frame[ours] = column if ours in TEXT else pd.to_numeric(column, errors="coerce")
    frame["type"] = frame["type"].where(frame["type"] != "", frame["name"])
    frame = frame[frame["duration"].notna()]
    if frame.empty:
        raise WrongInput(
            Text(
                "{path} holds no kernel; profile a step that runs on the NPU, with ProfilerActivity.NPU",
                "{path} 里没有任何核函数；请用 ProfilerActivity.NPU 采集在 NPU 上运行的一步",
            ).format(path=path)
        )
    frame = frame.sort_values(["device", "start"], kind="stable", na_position="last").reset_index(drop=True)
    frame["wait"] = frame["wait"].where(frame["wait"].notna(), _gaps(frame)).clip(lower=0.0)
    return frame


def read_table(path: Path, wanted: Collection[str] | None = None) -> pd.DataFrame:
    """A CSV as text, headers and cells stripped; cells that hold nothing (`N/A`) are empty text.

    `wanted` names the columns that are read; None reads all. Headers come out in small letters without spaces.
    """
    import pandas as pd

    keep = None if wanted is None else {_plain(one) for one in wanted}
    try:
        raw = pd.read_csv(
            path,
            dtype=str,
            keep_default_na=False,
            encoding="utf-8",
            encoding_errors="replace",
            usecols=None if keep is None else lambda one: _plain(str(one)) in keep,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, OSError) as error:
        raise WrongInput(
            Text("{path} cannot be read as a table: {reason}", "{path} 无法作为表格读取：{reason}").format(
                path=path, reason=str(error).strip().splitlines()[-1]
            )
        ) from error
    raw.columns = pd.Index([_plain(str(one)) for one in raw.columns])
    raw = raw.loc[:, ~raw.columns.duplicated()]
    for name in raw.columns:
        codes, values = pd.factorize(raw[name].fillna(""))
        # A column repeats its values: each is cleaned once.
        clean = [one.strip().strip('"') for one in values]
        cleaned = pd.Series(["" if one.casefold() in _NOTHING else one for one in clean], dtype=object)
        raw[name] = cleaned.take(codes).to_numpy()
    return raw


def _plain(header: str) -> str:
    """A header without what differs between versions: case, spaces, a byte order mark."""
    return re.sub(r"\s+", "", header.lstrip("\ufeff")).casefold()


def _times(column: pd.Series[str]) -> pd.Series[float]:
    """Microseconds since the first row. The numbers are too long for a float to keep their last digits, so whole
    microseconds are taken off as integers first."""
    import pandas as pd

    parts = column.str.extract(r"^(\d{1,18})(\.\d+)?$")
    whole = pd.to_numeric(parts[0], errors="coerce").astype("Int64")
    rest = pd.to_numeric(parts[1], errors="coerce").fillna(0.0)
    base = whole.min()
    if pd.isna(base):
        return pd.Series(float("nan"), index=column.index, dtype="float64")
    return (whole - base).astype("Float64").astype("float64") + rest


def _gaps(frame: pd.DataFrame) -> pd.Series[float]:
    """The idle time before each kernel, from the end of the one before it on the same device."""
    before = frame.groupby("device")[["start", "duration"]].shift()
    return frame["start"] - (before["start"] + before["duration"])


def _no_column(path: Path, names: tuple[str, ...], seen: list[str]) -> WrongInput:
    return WrongInput(
        Text(
            "{path} has no column {names}; it is no kernel_details.csv (known columns in it: {seen})",
            "{path} 没有列 {names}，不是 kernel_details.csv（其中认识的列：{seen}）",
        ).format(path=path, names=" / ".join(names), seen=", ".join(seen[:8]) or "-")
    )
