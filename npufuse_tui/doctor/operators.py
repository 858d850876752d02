"""Layer 2: the operator library."""

from __future__ import annotations

from npufuse_tui.doctor.cann import wrong_home
from npufuse_tui.doctor.diagnosis import Layer, Status
from npufuse_tui.doctor.findings import Findings, is_real
from npufuse_tui.doctor.fixes import cann_fix, kernel_fix, no_device
from npufuse_tui.judgement.api import bare_name
from npufuse_tui.judgement.api_registry import catalogue
from npufuse_tui.judgement.api_source import installed_package
from npufuse_tui.language import Text, same
from npufuse_tui.rules import load_rules

COSINE = 0.999  # the limit of the operator check
ABSOLUTE = 1e-2  # float16 against float32, values of a few units


def operators(found: Findings) -> Layer:
    """The operator library: fused calls run and agree with their formulas."""
    evidence = _cann_evidence(found) + _schema_evidence(found)
    if found.device:
        answer = found.ask("operators")
        if answer.get("error"):
            evidence.append(
                Text("the fused operators could not be run: {0}", "融合算子无法运行：{0}").format(answer["error"])
            )
            return Layer("operators", Status.FAILED, tuple(evidence), kernel_fix())
        wrong = 0
        for one in answer["results"]:
            if "error" in one:
                wrong += 1
                evidence.append(same(f"{one['name']}: {one['error']}"))
                continue
            good = one["cosine"] > COSINE and one["abs_diff"] < ABSOLUTE
            wrong += not good
            evidence.append(
                Text(
                    "{name}: cosine {cosine}, largest difference {diff} against float32: {verdict}",
                    "{name}：对照 float32，余弦 {cosine}，最大差 {diff}：{verdict}",
                ).format(
                    name=one["name"],
                    cosine=f"{one['cosine']:.6f}",
                    diff=f"{one['abs_diff']:.2e}",
                    verdict=Text("agrees", "一致") if good else Text("differs", "不一致"),
                )
            )
        ran = len(answer["results"]) > 0 and not wrong
        return Layer(
            "operators", Status.PASSED if ran else Status.FAILED, tuple(evidence), None if ran else kernel_fix()
        )
    if found.cann is None:
        return Layer("operators", Status.MISSING, tuple(evidence), cann_fix(found))
    evidence.append(no_device())
    return Layer("operators", Status.NOT_RUN, tuple(evidence), None)


def _schema_evidence(found: Findings) -> list[Text]:
    """Which of the rules' operators the installed torch_npu registers; asked of its files, without importing it."""
    if not is_real(found.versions.get("torch_npu")):
        return []
    files = installed_package(found.python)
    if files is None:
        return []
    registered = catalogue(files.root).operators
    names = sorted({bare_name(one.api) for one in load_rules()})
    lacks = [one for one in names if one not in registered]
    return [
        Text(
            "the installed torch_npu has {has} of the {all} operators of the rules{lacks}",
            "已安装的 torch_npu 具有规则所需 {all} 个算子中的 {has} 个{lacks}",
        ).format(
            has=len(names) - len(lacks),
            all=len(names),
            lacks=Text("; it lacks {0}", "；缺少 {0}").format(", ".join(lacks)) if lacks else Text("", ""),
        )
    ]


def _cann_evidence(found: Findings) -> list[Text]:
    evidence: list[Text] = []
    wrong = wrong_home(found.environ)
    if wrong:
        evidence.append(Text("{0}, which is no folder", "{0}，但该目录不存在").format(wrong))
    cann = found.cann
    if cann is None:
        return [*evidence, Text("no CANN is installed in the usual places", "常见位置没有 CANN")]
    evidence.append(
        Text("CANN {version} in {home}{how}", "CANN {version}，位于 {home}{how}").format(
            version=cann.version or "?",
            home=cann.home,
            how=Text("", "") if cann.named else Text(" (no ASCEND_HOME_PATH is set)", "（没有设置 ASCEND_HOME_PATH）"),
        )
    )
    if cann.part("opp"):
        evidence.append(Text("operator package {0}", "算子包 {0}").format(cann.part("opp")))
    if cann.kernels:
        evidence.append(Text("compiled operators for {0}", "已编译算子：{0}").format(", ".join(cann.kernels)))
    return evidence
