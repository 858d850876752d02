"""The words of the domain: what flows between the rooms, as frozen dataclasses.

Everything here can be pickled and written as JSON (`npufuse_tui.workspace` does both). Paths are relative to the
root of the scan, with forward slashes. Lines count from 1, both ends included. Spans count bytes of the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from npufuse_tui.language import Text


class Verdict(str, Enum):
    """Applicability. *recommended* may be approved in bulk, *caution* one by one, *refused* is shown only."""

    RECOMMENDED = "recommended"
    CAUTION = "caution"
    REFUSED = "refused"


class Priority(str, Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Severity(str, Enum):
    INFO = "info"
    WARNING = "warning"
    DANGER = "danger"


class GateKind(str, Enum):
    """How the fused branch is switched, in order of preference."""

    EXISTING = "existing"
    ARGUMENT = "argument"
    ENVIRONMENT = "environment"
    AVAILABILITY = "availability"


class Backend(str, Enum):
    """What ran the fused call. A number from the emulator is never a speed."""

    NPU = "npu"
    EMULATED = "emulated"


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """Bytes [start, end) of a file, and the lines that they lie on."""

    start: int
    end: int
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Splice:
    """Replace the bytes [start, end) of a file with `text`, encoded as the file is. start == end inserts."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Prelude:
    """Lines that a file needs once, after its imports, whatever the number of edits that ask for them.

    `key` tells whether it is there already; preludes are put in the order of `rank`, then of `key`.
    """

    key: str
    text: str
    rank: int = 50


@dataclass(frozen=True, slots=True)
class FileEdit:
    """What changes in one file: splices against the bytes whose sha256 is given, and the preludes they need."""

    file: str
    sha256: str
    splices: tuple[Splice, ...]
    preludes: tuple[Prelude, ...] = ()


@dataclass(frozen=True, slots=True)
class Edit:
    """The whole edit of one candidate. `digest` is what an approval approves: it covers every byte of the edit."""

    files: tuple[FileEdit, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class Risk:
    """Something that a person should know before approving, with the line that shows it."""

    code: str
    severity: Severity
    message: Text
    line: int | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """The switch in front of the fused branch: `expression` is the code that is written in the guard.

    `preludes` are the lines that the expression needs in the file of the guard, `files` the edits elsewhere (where the
    repo keeps its arguments).
    """

    kind: GateKind
    expression: str
    why: Text
    preludes: tuple[Prelude, ...] = ()
    files: tuple[FileEdit, ...] = ()


@dataclass(frozen=True, slots=True)
class Reuse:
    """Something the repo has already that the edit could use: a switch, a wrapper, an availability helper."""

    file: str
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class Step:
    """One small operator of the chain, in the order in which it runs. `op` is the aten-like name."""

    op: str
    source: str
    line: int
    kind: str  # "compute", "cast", "layout", "copy", "control"
    launches: int = 1
    reads: int = 1
    writes: int = 1


@dataclass(frozen=True, slots=True)
class Estimate:
    """Counted, not measured: what the chain launches and moves, before and after."""

    launches_before: int
    launches_after: int
    memory_passes_before: int
    memory_passes_after: int
    basis: str = "counted from the graph"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case of a check: the shapes and dtype it ran with and what was measured."""

    shape: str
    dtype: str
    layout: str
    cosine: float | None
    abs_diff: float | None
    grad_cosine: float | None
    dtype_out: str
    passed: bool
    grad_abs_diff: float | None = None
    reference_error_original: float | None = None
    reference_error_fused: float | None = None
    reason: str | None = None
    reason_zh: str | None = None

    @property
    def reason_text(self) -> Text | None:
        """The reason in both languages; None where there is none."""
        return None if self.reason is None else Text(self.reason, self.reason_zh or self.reason)


@dataclass(frozen=True, slots=True)
class Check:
    """The executable proof of one candidate: the region verbatim against its replacement."""

    status: str  # "passed", "failed", "skipped"
    backend: Backend
    cases: int
    worst_cosine: float | None
    worst_abs_diff: float | None
    worst_grad_cosine: float | None
    dtype_equal: bool | None
    reason: str | None = None
    per_case: tuple[CaseResult, ...] = ()
    reason_zh: str | None = None

    @property
    def reason_text(self) -> Text | None:
        """The reason in both languages; None where there is none."""
        return None if self.reason is None else Text(self.reason, self.reason_zh or self.reason)


@dataclass(frozen=True, slots=True)
class Binding:
    """One input of the pattern: the name that the rule gives it, and the code that it is in the user's function."""

    name: str
    source: str
    kind: str  # "tensor", "parameter", "scalar", "module"
    line: int | None = None


@dataclass(frozen=True, slots=True)
class ProofPlan:
    """All that the executable proof needs to run the region outside of the user's program.

    `original` and `fused` are the sources of two functions of equal signature: the region verbatim and the same with
    the fused call. `setup` is code that both need before them: helpers cut verbatim out of the user's files, and stubs.
    `parameters` are the names of the functions' parameters; `values` says for each how it is made: the name of an
    input of the rule's example, or Python source of a literal. `outputs` counts the values that are compared. `guard`
    is what the edit asks of the tensors besides the gate (the operator's limits): where it is false, the original runs.
    """

    rule: str
    variant: str
    original: str
    fused: str
    setup: str
    parameters: tuple[str, ...]
    values: tuple[str, ...]
    outputs: int
    not_run: Text | None = None
    guard: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chain of small operators, the fused operator that could take its place, and what is to be said about it."""

    id: str
    rule: str
    variant: str
    api: str
    file: str
    qualname: str
    start_line: int
    end_line: int
    group: str
    verdict: Verdict
    priority: Priority
    reason: Text
    original: str
    replacement: str | None
    edit: Edit | None
    diff: str | None
    generated_from: str | None = None
    risks: tuple[Risk, ...] = ()
    gate: Gate | None = None
    gates: tuple[Gate, ...] = ()
    reuse: tuple[Reuse, ...] = ()
    chain: tuple[Step, ...] = ()
    estimate: Estimate | None = None
    bindings: tuple[Binding, ...] = ()
    proof: ProofPlan | None = None
    check: Check | None = None


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that could hold a match and was not looked at, with the reason."""

    file: str
    reason: Text


@dataclass(frozen=True, slots=True)
class RuleSummary:
    """One row for each rule that ran, found or not."""

    id: str
    api: str
    found: int
    recommended: int
    caution: int
    refused: int
    reason: Text


@dataclass(frozen=True, slots=True)
class ScanResult:
    """Everything that one scan found, in stable order."""

    root: str
    commit: str | None
    dirty: bool
    files: int
    parsed: int
    bytes: int
    seconds: float
    cached: int
    skipped: tuple[SkippedFile, ...]
    rules: tuple[RuleSummary, ...]
    candidates: tuple[Candidate, ...]
    target: str = "both"


class Decision(str, Enum):
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Approval:
    """Who decided what about a candidate, when, and the digest of the edit that was shown.

    `edit` is set when the person changed the replacement by hand; it stands in place of the candidate's own.
    """

    candidate: str
    decision: Decision
    who: str
    when: str  # ISO 8601, UTC
    digest: str
    note: str = ""
    edit: Edit | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """The command that trains or runs the model, and how it is run."""

    command: str
    python: str | None = None
    steps: int = 50
    time_limit: float | None = None  # seconds for one run
    environment: tuple[tuple[str, str], ...] = ()


class TaskState(str, Enum):
    PENDING = "pending"
    OP_CHECK = "op_check"
    OP_FAILED = "op_failed"
    LOSS_CHECK = "loss_check"
    LOSS_FAILED = "loss_failed"
    SPEED_CHECK = "speed_check"
    CONCLUDED = "concluded"
    BLOCKED = "blocked"
    INTERRUPTED = "interrupted"


class Conclusion(str, Enum):
    ADOPT = "adopt"
    REJECT = "reject"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Metric:
    """One step read out of a log. `step_time` in seconds; `source` says where it came from: "log" or "clock"."""

    step: int
    loss: float | None
    step_time: float | None
    phase: str = "steady"  # "warmup" or "steady"
    tokens_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run of the launch command: the command as run, where, how it ended, and where its log and metrics are."""

    label: str  # "baseline-1", "baseline-2", "candidate", "capture"
    command: str
    commit: str
    started: str
    seconds: float
    exit_code: int | None
    ended: str  # "finished", "failed", "timed out", "stopped early", "cancelled"
    log: str
    metrics: str | None
    steps: int
    parser: str | None = None
    step_time_source: str | None = None
    last_lines: str = ""
    reason: Text | None = None


@dataclass(frozen=True, slots=True)
class LossResult:
    """The loss check: every step's relative difference against the first baseline."""

    steps: int
    max_rel_diff: float | None
    first_fail_step: int | None
    limit: float
    noise_max_rel_diff: float | None
    passed: bool | None  # None: cannot be judged
    reason: Text


@dataclass(frozen=True, slots=True)
class SpeedResult:
    """The speed check. `conclusion`: "faster", "slower", "no difference shown", or "not measured"."""

    conclusion: str
    reason: Text
    baseline_median_s: float | None = None
    fused_median_s: float | None = None
    ratio: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """The verification of one approved candidate."""

    id: str
    rule: str
    state: TaskState = TaskState.PENDING
    op: Check | None = None
    loss: LossResult | None = None
    speed: SpeedResult | None = None
    runs: tuple[RunRecord, ...] = ()
    conclusion: Conclusion | None = None
    reason: Text | None = None
    commit: str | None = None
    started: str | None = None
    finished: str | None = None


@dataclass(frozen=True, slots=True)
class Baseline:
    """The unmodified code, run before anything else is compared with it."""

    status: str  # "pending", "running", "passed", "failed"
    steps: int = 0
    noise_max_rel_diff: float | None = None
    runs: tuple[RunRecord, ...] = ()
    reason: Text | None = None


class Stage(str, Enum):
    """Where a session is; each stage has a screen."""

    SCAN = "scan"
    CANDIDATES = "candidates"
    CHECKPOINT = "checkpoint"
    APPLY = "apply"
    VERIFY = "verify"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class Session:
    """The state of one session, as it is saved. Replaced whole, never changed in place."""

    id: str
    created: str
    root: str
    repository: str | None  # top of the git work tree, or None where there is no git
    base: str | None  # commit that edits start from
    branch: str | None
    stage: Stage
    scan: ScanResult | None = None
    approvals: tuple[Approval, ...] = ()
    launch: Launch | None = None
    backend: Backend | None = None
    baseline: Baseline | None = None
    tasks: tuple[Task, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)
    schema: int = 1
