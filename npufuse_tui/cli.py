"""The command line: `main` is the program `npufuse`. See npufuse_tui/commands for what each command does."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

from npufuse_tui import __version__
from npufuse_tui.commands.arguments import language_asked
from npufuse_tui.commands.output import ReaderGone
from npufuse_tui.errors import ExitCode, NpufuseError
from npufuse_tui.language import LANGUAGES, Text, language_of_locale, set_language

if TYPE_CHECKING:
    import typer

BROKEN_PIPE = 128 + signal.SIGPIPE
"""What a program answers whose reader went away, as other programs do."""


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line and leave with the exit code that docs and scripts rely on."""
    words = list(sys.argv[1:] if words is None else words)
    if words == ["--version"]:
        print(f"npufuse {__version__}")
        sys.exit(0)
    sys.exit(run(words))


def run(words: Sequence[str]) -> int:
    """Run a command line; the exit code. Errors are said in one sentence on standard error."""
    asked = language_asked(words)
    set_language(asked if asked in LANGUAGES else language_of_locale())
    debug = "--debug" in words[: words.index("--") if "--" in words else len(words)]
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    try:
        if asked is not None and asked not in LANGUAGES:
            return _said(
                Text("--lang must be zh or en, not {value}", "--lang 只能是 zh 或 en，而不是 {value}").format(
                    value=asked
                ),
                ExitCode.WRONG_INPUT,
            )
        code = _parsed(words)
        sys.stdout.flush()
        return code
    except NpufuseError as error:
        if debug:
            raise
        return _said(error.text, error.exit_code)
    except KeyboardInterrupt:
        return _said(Text("interrupted; what was saved stays", "已中断；已保存的内容不变"), ExitCode.INTERRUPTED)
    except (ReaderGone, BrokenPipeError):
        # nobody reads any more: nothing is left to say, and nothing may be said about it when the process ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        if debug:
            raise
        return _said(
            Text(
                "npufuse made a mistake ({kind}: {why}): run it again with --debug and report what it shows",
                "npufuse 内部出错（{kind}：{why}）：请加 --debug 重新运行并报告其输出",
            ).format(kind=type(error).__name__, why=error),
            ExitCode.ANSWER_IS_NO,
        )


def _parsed(words: Sequence[str]) -> int:
    import typer

    from npufuse_tui.commands.usage import UsageError, sentence

    try:
        code = _command_line()(list(words), prog_name="npufuse", standalone_mode=False)
    except UsageError as error:
        return _said(sentence(error), ExitCode.WRONG_INPUT)
    except typer.Exit as end:
        code = end.exit_code
    except typer.Abort as end:
        raise KeyboardInterrupt from end
    if code == ExitCode.INTERRUPTED:  # what the parser makes of an interrupt
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _command_line() -> typer.Typer:
    """The commands, made after the language is known because their help is in it."""
    import typer

    from npufuse_tui.commands import api, sessions
    from npufuse_tui.commands.apply import apply
    from npufuse_tui.commands.check import check
    from npufuse_tui.commands.demo import demo
    from npufuse_tui.commands.doctor import doctor
    from npufuse_tui.commands.emulate import emulate
    from npufuse_tui.commands.explain import explain
    from npufuse_tui.commands.group import CommandLine
    from npufuse_tui.commands.options import say
    from npufuse_tui.commands.profile import profile
    from npufuse_tui.commands.report import report
    from npufuse_tui.commands.scan import scan
    from npufuse_tui.commands.start import start
    from npufuse_tui.commands.verify import verify

    line = typer.Typer(
        name="npufuse",
        cls=CommandLine,
        help=say(
            "Find chains of small operators in PyTorch code, replace them with fused torch_npu operators on a branch, "
            "and prove each replacement. npufuse [PATH] opens the app.",
            "在 PyTorch 代码中找出小算子链，在分支上替换为 torch_npu 融合算子，并逐一验证。npufuse [PATH] 打开界面。",
        ),
        subcommand_metavar="[PATH] | COMMAND [ARGS]...",
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
    )
    line.callback(invoke_without_command=True)(start)
    line.command(
        help=say("The whole loop on a small model in a throw-away repo.", "在一次性仓库中的小模型上走完整个流程。")
    )(demo)
    line.command(help=say("Find candidates; writes nothing.", "查找候选项；不写入任何文件。"))(scan)
    line.command(help=say("Prove candidates numerically, in a child process.", "在子进程中对候选项做数值校验。"))(check)
    line.command(help=say("Edit approved candidates in worktrees.", "在工作树中修改已批准的候选项。"))(apply)
    line.command(
        help=say("Check numerics, loss and speed; commit what passes.", "校验数值、损失与速度；提交通过的修改。")
    )(verify)
    line.command(help=say("Write the reports of a session.", "生成会话的报告。"))(report)
    line.add_typer(sessions.app, name="sessions")
    line.add_typer(api.app, name="api")
    line.command(help=say("What a chain costs and its fused operator saves.", "说明算子链的代价与融合的收益。"))(
        explain
    )
    line.command(help=say("Hot kernel sequences of a profile.", "分析性能数据中的热点算子序列。"))(profile)
    line.command(help=say("Test the five layers of the Ascend stack.", "检测昇腾软件栈的五个层次。"))(doctor)
    line.command(
        help=say("Run a command with torch_npu emulated.", "在 torch_npu 仿真环境中运行命令。"),
        context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
    )(emulate)
    return line


def _said(text: Text, code: int) -> int:
    from npufuse_tui.commands.output import message

    with suppress(OSError):
        message(Text("npufuse: {text}", "npufuse：{text}").format(text=text))
    return int(code)


def _interrupted(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
