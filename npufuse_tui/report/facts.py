"""Where and with what a session's runs were made: rows of (what, value) for every report that names its environment."""

from __future__ import annotations

from npufuse_tui import __version__
from npufuse_tui.language import Text, same
from npufuse_tui.model import RunRecord, Session
from npufuse_tui.report import labels, redact
from npufuse_tui.report.conclusion import ENVIRONMENT_NOTE

_KNOWN = {
    "python": Text("Python", "Python"),
    "torch": Text("torch", "torch"),
    "torch_npu": Text("torch_npu", "torch_npu"),
    "cann": Text("CANN", "CANN"),
    "driver": Text("Driver", "驱动"),
    "device": Text("Device", "设备"),
    "devices": Text("Devices", "设备"),
    "host": Text("Host", "主机"),
    "platform": Text("Platform", "平台"),
}
NOT_RECORDED = Text("not recorded", "未记录")


def environment(session: Session) -> list[tuple[Text, Text, bool]]:
    """(what, value, whether it is code). Notes named `environment.NAME` are what the verifier saw of the machine."""
    seen = {
        name[len(ENVIRONMENT_NOTE) :]: value
        for name, value in session.notes.items()
        if name.startswith(ENVIRONMENT_NOTE)
    }
    rows: list[tuple[Text, Text, bool]] = [
        (Text("Backend", "后端"), labels.backend(session.backend), False),
        (Text("npufuse", "npufuse"), same(__version__), False),
    ]
    for name in ("torch", "torch_npu", "device"):
        if name not in seen and not (name == "device" and "devices" in seen):
            rows.append((_KNOWN[name], NOT_RECORDED, False))
    rows += [(_KNOWN.get(name, same(name)), same(redact.command(value)), True) for name, value in sorted(seen.items())]
    rows += [
        (Text("Session", "会话"), same(session.id), True),
        (Text("Repository", "仓库"), same(session.repository or session.root), True),
        (Text("Base commit", "基准提交"), same(session.base) if session.base else NOT_RECORDED, bool(session.base)),
        (Text("Branch", "分支"), same(session.branch) if session.branch else Text("none", "无"), bool(session.branch)),
    ]
    if session.scan and session.scan.dirty:
        rows.append(
            (
                Text("Work tree", "工作区"),
                Text(
                    "had changes that were not committed; they are not part of what was run",
                    "存在未提交的改动；它们不在运行的代码之内",
                ),
                False,
            )
        )
    if session.launch:
        rows.append((Text("Launch command", "启动命令"), same(redact.command(session.launch.command)), True))
        rows += [
            (Text("Environment", "环境变量"), same(f"{name}={value}"), True)
            for name, value in redact.environment(session.launch.environment)
        ]
        if session.launch.python:
            rows.append((Text("Interpreter", "解释器"), same(session.launch.python), True))
    return rows


def last_lines(run: RunRecord) -> str:
    """The end of a run's log, without its secrets."""
    return redact.command(run.last_lines)
