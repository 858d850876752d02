"""Records what the candidates' functions are called with. Runs inside the user's processes, as `sitecustomize`.

This file is self-contained: it is copied under the name sitecustomize.py into a folder that PYTHONPATH begins with, so
every Python that the launch command starts (torchrun's workers, `python -m`, spawned workers) reads it before anything
of the user's. It changes no file. When a file with candidates is loaded, its syntax tree gets three kinds of calls, at
the function's start, at the region's start, and around the first place where each input of the region is read; line
numbers stay as they are. Whatever goes wrong in here is noted and never reaches the user's program.

Speaks Python 3.8, imports nothing outside of the standard library, and torch only where the program has it already.
"""

from __future__ import annotations

# ruff: noqa: PTH100, PTH105, PTH113, PTH118, PTH120, PTH123, PTH202
# pathlib is not loaded in a program that may not need it: it would be the first thing that every process imports.
import ast
import atexit
import builtins
import functools
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import sys
import threading
from typing import Any

REQUEST = "NPUFUSE_CAPTURE"
_MAX_SHAPES = 4096
_SAMPLE = 1 << 20


class Recorder:
    """What was seen in this process, written to one file of its own."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.folder: str = request["folder"]
        self.details: int = request["details"]
        self.keep_inputs: bool = request["keep_inputs"]
        self.max_bytes: int = request["max_bytes"]
        self.candidates: dict[str, dict[str, Any]] = {
            one["id"]: one for file in request["files"] for one in file["candidates"]
        }
        self.lock = threading.RLock()
        self.current = threading.local()
        self.counting = False
        self.problems: list[str] = []
        self.start()

    def start(self) -> None:
        """Also called in the child of a fork, which starts anew."""
        self.lock = threading.RLock()
        self.pid = os.getpid()
        self.files: dict[str, Any] = getattr(self, "files", {})
        self.seen: dict[str, dict[str, Any]] = {}
        self.signatures: dict[str, set[Any]] = {}
        self.shapes: dict[str, set[Any]] = {}
        self.written_bytes = 0
        self.steps = 0

    def of(self, identity: str) -> dict[str, Any]:
        if identity not in self.seen:
            self.seen[identity] = {"function_calls": 0, "calls": 0, "distinct_shapes": 0, "examples": []}
            self.signatures[identity] = set()
            self.shapes[identity] = set()
        return self.seen[identity]

    def count_steps(self) -> None:
        """Count the steps of optimizers, once torch is there: what calls of a function are held against."""
        optimizers = sys.modules.get("torch.optim.optimizer")
        register = getattr(optimizers, "register_optimizer_step_post_hook", None)
        if register is not None and not self.counting:
            self.counting = True
            register(lambda *_: self.stepped())

    def stepped(self) -> None:
        with self.lock:
            self.steps += 1
            for entry in self.seen.values():
                entry["steps"], entry["calls_in_steps"] = self.steps, entry["calls"]

    def function_called(self, identity: str, owner: Any = None) -> None:
        with self.lock:
            self.finish(identity)
            entry = self.of(identity)
            entry["function_calls"] += 1
            training = getattr(owner, "training", None)
            self._here()[identity] = {"training": training if isinstance(training, bool) else None}
            if _worth_writing(entry["function_calls"]):
                self.write()

    def region_entered(self, identity: str) -> None:
        with self.lock:
            self.finish(identity)
            self.count_steps()
            entry = self.of(identity)
            entry["calls"] += 1
            here = self._here().get(identity, {})
            self._here()[identity] = {
                "training": here.get("training"),
                "values": {},
                "signature": [],
                "open": True,
                "number": entry["calls"],
            }

    def value_read(self, identity: str, name: str, value: Any) -> None:
        call = self._here().get(identity)
        if call is None or not call.get("open") or name in call["values"]:
            return
        call["values"][name] = value
        if len(call["values"]) == len(self.candidates[identity]["bindings"]):
            self.finish(identity)

    def finish(self, identity: str) -> None:
        """Close the call that is open: count its shapes, and keep it when they are new."""
        call = self._here().get(identity)
        if call is None or not call.get("open"):
            return
        call["open"] = False
        values, call["values"] = call["values"], {}
        with self.lock:
            entry = self.of(identity)
            signature = (_grad_enabled(), *sorted((name, _signature(value)) for name, value in values.items()))
            known = self.signatures[identity]
            new = signature not in known
            self.shapes[identity].add(tuple(sorted((name, _shape_of(value)) for name, value in values.items())))
            entry["distinct_shapes"] = min(len(self.shapes[identity]), _MAX_SHAPES)
            if new and len(known) < _MAX_SHAPES:
                known.add(signature)
                if len(entry["examples"]) < self.details:
                    entry["examples"].append(self._described(identity, values, call))
                    self.write()
            elif _worth_writing(entry["calls"]):
                self.write()

    def _here(self) -> dict[str, Any]:
        calls = getattr(self.current, "calls", None)
        if calls is None or getattr(self.current, "pid", None) != self.pid:
            calls = self.current.calls = {}
            self.current.pid = self.pid
        return calls

    def _described(self, identity: str, values: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
        torch = sys.modules.get("torch")
        kept: dict[str, Any] = {}
        flags = self.candidates[identity].get("flags", ())
        described = {
            name: _describe(torch, value, name in flags or self.keep_inputs, kept, name)
            for name, value in values.items()
        }
        if kept and torch is not None:
            size = sum(one.numel() * one.element_size() for one in kept.values())
            if self.written_bytes + size <= self.max_bytes:
                self.written_bytes += size
                name = f"{self.pid}-{identity}-{call['number']}.pt"
                path = os.path.join(self.folder, name)
                torch.save(kept, path + ".part")
                os.replace(path + ".part", path)
                for key in kept:
                    described[key].update(file=path, key=key)
        return {
            "values": described,
            "training": call["training"],
            "grad_enabled": _grad_enabled(),
            "autocast": _autocast(torch, values.values()) if torch is not None else None,
            "number": call["number"],
        }

    def write(self) -> None:
        with self.lock:
            found = {
                "pid": self.pid,
                "rank": os.environ.get("RANK"),
                "argv": [str(one) for one in getattr(sys, "argv", [])][:20],
                "files": self.files,
                "problems": self.problems,
                "seen": self.seen,
            }
            path = os.path.join(self.folder, f"{self.pid}.json")
            try:
                with open(path + ".part", "w", encoding="utf-8") as file:
                    json.dump(found, file)
                os.replace(path + ".part", path)
            except (OSError, ValueError, TypeError):
                pass  # a full disk stops the recording, not the program

    def at_exit(self) -> None:
        for identity in list(self.seen):
            self.finish(identity)
        self.write()


def _worth_writing(count: int) -> bool:
    return count & (count - 1) == 0  # 1, 2, 4, 8 …


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def _signature(value: Any) -> str:
    if _is_tensor(value):
        return f"{tuple(value.shape)} {value.dtype} {value.requires_grad}"
    if isinstance(value, (bool, int, float, str, type(None))):
        return repr(value)[:80]
    return type(value).__name__


def _grad_enabled() -> bool | None:
    torch = sys.modules.get("torch")
    return bool(torch.is_grad_enabled()) if torch is not None else None


def _shape_of(value: Any) -> str:
    return str(tuple(value.shape)) if _is_tensor(value) else ""


def _describe(torch: Any, value: Any, keep: bool, kept: dict[str, Any], name: str) -> dict[str, Any]:
    if isinstance(value, (bool, int, float, str, type(None))):
        return {"kind": "value", "value": value}
    if not _is_tensor(value):
        if isinstance(value, (list, tuple)) and all(isinstance(one, (bool, int, float, str)) for one in value):
            return {"kind": "value", "value": list(value)}
        return {"kind": "other", "type": f"{type(value).__module__}.{type(value).__qualname__}"}
    found: dict[str, Any] = {
        "kind": "tensor",
        "shape": [int(size) for size in value.shape],
        "dtype": str(value.dtype).replace("torch.", ""),
        "stride": [int(step) for step in value.stride()],
        "device": str(value.device),
        "requires_grad": bool(value.requires_grad),
    }
    try:
        found.update(_measured(torch, value))
        floating = value.is_floating_point() or value.is_complex()
        # Masks, indices and the like mean something: random numbers would not stand for them.
        # What has a gradient is no mask: a weight of ones, as training starts with, must not stay one.
        structured = found.get("low", 0) < -1e4 or found.get("distinct", 99) <= 2
        if keep or not floating or (structured and not value.requires_grad):
            kept[name] = value.detach().to("cpu").clone().contiguous()
    except Exception as problem:  # a fake tensor, a tensor inside a transform
        found["not_measured"] = f"{type(problem).__name__}: {str(problem)[:200]}"
    found.pop("distinct", None)
    return found


def _measured(torch: Any, value: Any) -> dict[str, Any]:
    """Mean, spread and range, of at most a million elements, without a trace in autograd or the random state."""
    if value.numel() == 0 or value.is_complex():
        return {}
    with torch.no_grad():
        sample = value.detach().reshape(-1)[:_SAMPLE]
        exact = sample.to(torch.float64 if sample.device.type == "cpu" else torch.float32)
        finite = exact[torch.isfinite(exact)]
        low, high = float(exact.min()), float(exact.max())
        found: dict[str, Any] = {"low": max(low, -1e38) if low == low else 0.0}
        found["high"] = min(high, 1e38) if high == high else 0.0
        if not value.is_floating_point():
            return {"low": int(found["low"]), "high": int(found["high"])}
        if finite.numel():
            found["mean"] = float(finite.mean())
            found["std"] = float(finite.std(unbiased=False))
        found["distinct"] = int(torch.unique(exact[:65536]).numel()) if value.numel() > 2 else 99
    return found


def _autocast(torch: Any, values: Any) -> str | None:
    """The dtype of an autocast block for the device of the first tensor, or None outside of one."""
    kind = next((value.device.type for value in values if _is_tensor(value)), "cpu")
    try:
        try:
            if torch.is_autocast_enabled(kind):
                return str(torch.get_autocast_dtype(kind)).replace("torch.", "")
        except TypeError:  # torch before 2.4
            if kind == "cpu" and torch.is_autocast_cpu_enabled():
                return str(torch.get_autocast_cpu_dtype()).replace("torch.", "")
            if kind != "cpu" and torch.is_autocast_enabled():
                return str(torch.get_autocast_gpu_dtype()).replace("torch.", "")
    except Exception:
        return None
    return None


# ---------------------------------------------------------------------------------------------------------------------
# What goes into the syntax tree


class _Wrap(ast.NodeTransformer):
    """Puts a recording call around the first place, in the order of evaluation, where each input is read."""

    def __init__(self, identity: str, wanted: dict[str, list[str]]) -> None:
        self.identity = identity
        self.wanted = wanted  # dump of the expression → names of the inputs that it is
        self.found: list[str] = []

    def visit(self, node: ast.AST) -> Any:
        names = self.wanted.get(ast.dump(node), []) if isinstance(node, ast.expr) else []
        waiting = [name for name in names if name not in self.found]
        self.found.extend(waiting)
        read: Any = self.generic_visit(node)
        for name in waiting:
            read = _call("__npufuse_value__", [ast.Constant(self.identity), ast.Constant(name), read], read)
        return read

    def visit_statements(self, statements: list[ast.stmt]) -> None:
        for index, statement in enumerate(statements):
            statements[index] = self.visit(statement)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Assign):  # the value is read before the targets are
            node.value = self.visit(node.value)
            node.targets = [self.visit(target) for target in node.targets]
            return node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return node
        return super().generic_visit(node)


def _call(function: str, arguments: list[ast.expr], place: ast.AST) -> ast.expr:
    call = ast.Call(ast.Name(function, ast.Load()), arguments, [])
    for node in (call, call.func, *(one for one in arguments if not hasattr(one, "lineno"))):
        ast.copy_location(node, place)
    return call


def instrument(tree: ast.Module, candidates: list[dict[str, Any]]) -> dict[str, str]:
    """Put the calls for all candidates of a file into its tree. Returns what could not be done: candidate → reason."""
    problems: dict[str, str] = {}
    for candidate in candidates:
        try:
            problem = _instrument_one(tree, candidate)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            problems[candidate["id"]] = problem
    ast.fix_missing_locations(tree)
    return problems


def _instrument_one(tree: ast.Module, candidate: dict[str, Any]) -> str | None:
    function = _function_at(tree, candidate["qualname"], candidate["start_line"])
    if function is None:
        return f"there is no function {candidate['qualname']} at line {candidate['start_line']}"
    suite, first, last = _statements(function, candidate["start_line"], candidate["end_line"])
    if suite is None:
        return f"no statement of {candidate['qualname']} starts at line {candidate['start_line']}"
    identity = candidate["id"]
    wanted: dict[str, list[str]] = {}
    for binding in candidate["bindings"]:
        try:
            expression = ast.parse(binding["source"].strip(), mode="eval").body
        except SyntaxError:
            continue
        wanted.setdefault(ast.dump(expression), []).append(binding["name"])
    wrap = _Wrap(identity, wanted)
    region = suite[first : last + 1]
    wrap.visit_statements(region)
    before: list[ast.stmt] = [ast.Expr(_call("__npufuse_enter__", [ast.Constant(identity)], region[0]))]
    for binding in candidate["bindings"]:  # inputs that are not written as such in the region
        if binding["name"] not in wrap.found and _is_plain(binding["source"]):
            before.append(_guarded(identity, binding, region[0]))
    suite[first : last + 1] = [*before, *region]
    body = function.body
    start = 1 if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
    arguments: list[ast.expr] = [ast.Constant(identity)]
    parameters = [*function.args.posonlyargs, *function.args.args]
    if parameters and parameters[0].arg == "self":
        arguments.append(ast.Name("self", ast.Load()))
    body.insert(start, ast.Expr(_call("__npufuse_call__", arguments, body[min(start, len(body) - 1)])))
    return None


def _guarded(identity: str, binding: dict[str, Any], place: ast.stmt) -> ast.stmt:
    call = f"__npufuse_value__({identity!r}, {binding['name']!r}, {binding['source'].strip()})"
    source = f"try:\n    {call}\nexcept Exception:\n    pass"
    statement = ast.parse(source).body[0]
    for node in ast.walk(statement):
        ast.copy_location(node, place)
    return statement


def _is_plain(source: str) -> bool:
    """Whether evaluating it once more changes nothing: names, attributes, constants, arithmetic, `float("-inf")`."""
    try:
        tree = ast.parse(source.strip(), mode="eval")
    except SyntaxError:
        return False
    allowed = (ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Tuple, ast.Slice)
    skipped = (ast.Expression, ast.operator, ast.unaryop, ast.expr_context)
    called = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    numbers = all(isinstance(node.func, ast.Name) and node.func.id == "float" and not node.keywords for node in called)
    return numbers and all(isinstance(node, (*allowed, *skipped, ast.Call)) for node in ast.walk(tree))


def _function_at(tree: ast.Module, qualname: str, line: int) -> Any:
    """The function of that qualified name whose lines hold `line`, else the last of that name."""
    found: list[Any] = []

    def visit(node: ast.AST, path: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = (*path, child.name)
                if not isinstance(child, ast.ClassDef) and ".".join(inner) == wanted:
                    found.append(child)
                visit(child, inner)
            else:
                visit(child, path)

    wanted = qualname.replace(".<locals>", "")
    visit(tree, ())
    at_line = [one for one in found if one.lineno <= line <= (one.end_lineno or one.lineno)]
    return (at_line or [None])[-1]


def _statements(function: Any, start: int, end: int) -> tuple[list[ast.stmt] | None, int, int]:
    """The suite that holds the region's statements and the indices of the first and the last."""
    best: tuple[list[ast.stmt] | None, int, int] = (None, 0, 0)
    for node in ast.walk(function):
        for name in ("body", "orelse", "finalbody"):
            suite = getattr(node, name, None)
            if not isinstance(suite, list) or not suite or not isinstance(suite[0], ast.stmt):
                continue
            inside = [i for i, one in enumerate(suite) if one.lineno >= start and (one.end_lineno or 0) <= end]
            if inside and best[0] is None:
                best = (suite, inside[0], inside[-1])
    return best


# ---------------------------------------------------------------------------------------------------------------------
# How files are loaded


class Targets:
    """The files with candidates, by path and by content (a copy of the file elsewhere counts too)."""

    def __init__(self, request: dict[str, Any], recorder: Recorder) -> None:
        self.by_path = {os.path.realpath(one["path"]): one for one in request["files"]}
        self.by_hash = {one["sha256"]: one for one in request["files"]}
        self.sizes = {one["size"] for one in request["files"]}
        self.recorder = recorder

    def find(self, path: Any) -> Any:
        """The request for that file, or None."""
        try:
            full = str(os.path.realpath(os.fspath(path)))
            if full in self.by_path:
                return self.by_path[full]
            if not full.endswith(".py") or os.path.getsize(full) not in self.sizes:
                return None
            with open(full, "rb") as file:
                return self.by_hash.get(hashlib.sha256(file.read()).hexdigest())
        except (OSError, TypeError, ValueError):
            return None

    def code(self, target: dict[str, Any], data: bytes, path: str, as_main: bool) -> Any:
        """The instrumented code of a file, or None (the file is then loaded as it is) with the reason noted."""
        name = os.path.realpath(path)
        try:
            tree = ast.parse(data, path)
            problems = instrument(tree, target["candidates"])
            if as_main:
                _as_script(tree)
            code = compile(tree, path, "exec", dont_inherit=True)
            self.recorder.files[name] = {one["id"]: problems.get(one["id"], "") for one in target["candidates"]}
            self.recorder.write()
            return code
        except Exception as problem:
            reason = f"{type(problem).__name__}: {problem}"
            self.recorder.files[name] = {one["id"]: reason for one in target["candidates"]}
            self.recorder.write()
            return None


def _as_script(tree: ast.Module) -> None:
    """A script has no spec and no package; code loaded through a finder would have."""
    place = 0
    for index, statement in enumerate(tree.body):
        docstring = index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if docstring or future:
            place = index + 1
    names: list[ast.expr] = [ast.Name(name, ast.Store()) for name in ("__spec__", "__package__", "__cached__")]
    reset = ast.Assign(names, ast.Constant(None))
    ast.copy_location(reset, ast.Constant(None, lineno=1, col_offset=0))
    tree.body.insert(place, ast.fix_missing_locations(reset))


def _hook_imports(targets: Targets) -> None:
    """Modules: every loader of source files asks here first. Covers `import`, `python -m` and importlib."""
    loader = importlib.machinery.SourceFileLoader
    original = loader.get_code

    @functools.wraps(original)
    def get_code(self: Any, fullname: str) -> Any:
        path: str = getattr(self, "path", "")
        target = targets.find(path) if path else None
        if target is not None:
            code = targets.code(target, self.get_data(path), path, as_main=False)
            if code is not None:
                return code
        return original(self, fullname)

    loader.get_code = get_code  # type: ignore[method-assign]


class _MainFinder:
    """Stands for a script with candidates: Python asks path hooks about the file that it is to run."""

    def __init__(self, path: str, targets: Targets, target: dict[str, Any], hook: Any) -> None:
        self.path = path
        self.targets = targets
        self.target = target
        self.hook = hook

    def find_spec(self, name: str, _target: Any = None) -> Any:
        if name != "__main__":
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=os.path.abspath(self.path))  # type: ignore[arg-type]

    def create_module(self, _spec: Any) -> None:
        return None

    def exec_module(self, _module: Any) -> None:
        raise ImportError("a script is run, not imported")

    def get_code(self, _name: str) -> Any:
        """The code of the script; also puts sys.path as it is for a script."""
        sys.path_importer_cache.pop(self.path, None)
        if self.hook in sys.path_hooks:
            sys.path_hooks.remove(self.hook)
        if sys.path and sys.path[0] == self.path:
            if getattr(sys.flags, "safe_path", False):
                del sys.path[0]
            else:
                sys.path[0] = os.path.dirname(os.path.realpath(self.path))
        full = os.path.abspath(self.path)
        with open(full, "rb") as file:
            data = file.read()
        code = self.targets.code(self.target, data, full, as_main=True)
        return code if code is not None else _plain_script(data, full)


def _plain_script(data: bytes, path: str) -> Any:
    tree = ast.parse(data, path)
    _as_script(tree)
    return compile(tree, path, "exec", dont_inherit=True)


def _hook_scripts(targets: Targets) -> None:
    """Scripts: `python train.py`, and runpy.run_path (accelerate, spawned workers that load the script again)."""

    def path_hook(path: str) -> Any:
        target = targets.find(path) if os.path.isfile(path) else None
        if target is None:
            raise ImportError("not a script with candidates")
        return _MainFinder(path, targets, target, path_hook)

    sys.path_hooks.insert(0, path_hook)
    import runpy

    original = getattr(runpy, "_get_code_from_file", None)
    if original is None:
        return

    @functools.wraps(original)
    def get_code_from_file(*arguments: Any) -> Any:
        found = original(*arguments)
        path = os.fspath(arguments[-1])
        target = targets.find(path)
        if target is not None:
            with open(path, "rb") as file:
                code = targets.code(target, file.read(), os.path.abspath(path), as_main=False)
            if code is not None:
                return (code, *found[1:]) if isinstance(found, tuple) else code
        return found

    runpy._get_code_from_file = get_code_from_file  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------------------------------


def _quiet(function: Any, problems: list[str]) -> Any:
    """The recording call that the user's code makes: never raises."""

    @functools.wraps(function)
    def call(*arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception as problem:
            if len(problems) < 5:
                problems.append(f"{type(problem).__name__}: {problem}")

    return call


def _install() -> None:
    with open(os.environ[REQUEST], encoding="utf-8") as file:
        request = json.load(file)
    recorder = Recorder(request)
    targets = Targets(request, recorder)
    read = _quiet(recorder.value_read, recorder.problems)

    def value(identity: str, name: str, seen: Any) -> Any:
        read(identity, name, seen)
        return seen

    builtins.__npufuse_call__ = _quiet(recorder.function_called, recorder.problems)  # type: ignore[attr-defined]
    builtins.__npufuse_enter__ = _quiet(recorder.region_entered, recorder.problems)  # type: ignore[attr-defined]
    builtins.__npufuse_value__ = value  # type: ignore[attr-defined]
    _hook_imports(targets)
    _hook_scripts(targets)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=recorder.start)
    atexit.register(recorder.at_exit)
    recorder.write()


def _chain() -> None:
    """Run the sitecustomize that this one stands before, if there is one."""
    here = os.path.realpath(os.path.dirname(os.path.abspath(__file__)))
    rest = [path for path in sys.path if os.path.realpath(path or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get(REQUEST) and __name__ == "sitecustomize":
    try:
        _install()
    except Exception as problem:
        print(f"npufuse: the recorder could not start: {problem!r}", file=sys.stderr)
    _chain()
