"""Small repos, each with its own way of keeping switches, and how each is turned on and off."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

CHAIN = "self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))"


@dataclass(frozen=True)
class Repo:
    """A repo with one norm in model.py.

    `make(on)` is code that gives `norm` with the switch as `on` says; `kind` and `asked` are the gate that is right.
    `files` stand beside the model. Environment variables of the off case are in `off`.
    """

    name: str
    kind: str
    asked: str
    model: str
    make: str
    files: dict[str, str] = field(default_factory=dict)
    off: dict[str, str] = field(default_factory=dict)


def model(head: str = "", parameters: str = "", init: str = "", forward: str = "") -> str:
    kept = textwrap.indent(init or "pass", " " * 8)
    return f"""\
import torch
from torch import nn
{head}

class Norm(nn.Module):
    def __init__(self, size, {parameters}eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps
{kept}

    def forward(self, x{forward}):
        return {CHAIN}
"""


PLAIN = "from model import Norm\nnorm = Norm(8)\n"

CONFIG = "from dataclasses import dataclass\n\n\n@dataclass\nclass Config:\n    size: int = 8\n    inner: int = 16\n"

ARGUMENTS = '''\
from dataclasses import dataclass, field


@dataclass
class ModelArguments:
    """What the model is built with."""

    size: int = field(default=8, metadata={"help": "the width"})

    def wide(self) -> int:
        return 2 * self.size
'''

OPTIONS = """\
import argparse


def parse(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument(
        "--size",
        type=int,
        default=8,
    )
    return parser.parse_args(words)
"""

REPOS = [
    Repo(
        "a constant of the file",
        "existing",
        "USE_NPU",
        model('import os\n\nUSE_NPU = os.environ.get("USE_NPU", "1") == "1"\n'),
        PLAIN,
        off={"USE_NPU": "0"},
    ),
    Repo(
        "a constant of another file",
        "existing",
        "IS_NPU",
        model("from device import IS_NPU\n"),
        PLAIN,
        {
            "device.py": 'import os\n\nimport torch\n\nIS_NPU = hasattr(torch, "npu") and os.environ.get("NO_NPU") is None\n'
        },
        off={"NO_NPU": "1"},
    ),
    Repo(
        "a helper of the repo",
        "existing",
        "is_npu_available()",
        model("from device import is_npu_available\n"),
        PLAIN,
        {
            "device.py": "import os\n\nimport torch\n\n\ndef is_npu_available() -> bool:\n"
            '    return hasattr(torch, "npu") and "NO_NPU" not in os.environ\n'
        },
        off={"NO_NPU": "1"},
    ),
    Repo(
        "an attempt to import torch_npu",
        "existing",
        "HAS_NPU",
        model(
            "import os\n\ntry:\n    if os.environ.get('NO_NPU'):\n        raise ImportError\n    import torch_npu\n\n"
            "    HAS_NPU = True\nexcept ImportError:\n    HAS_NPU = False\n"
        ),
        PLAIN,
        off={"NO_NPU": "1"},
    ),
    Repo(
        "an attribute from the constructor",
        "existing",
        "self.use_npu",
        model(parameters="use_npu=True, ", init="self.use_npu = use_npu"),
        "from model import Norm\nnorm = Norm(8, use_npu=on)\n",
    ),
    Repo(
        "an argument of forward",
        "existing",
        "use_npu",
        model(forward=", use_npu: bool = True"),
        "import functools\nfrom model import Norm\nnorm = functools.partial(Norm(8), use_npu=on)\n",
    ),
    Repo(
        "a field of a configuration",
        "existing",
        "self.config.use_npu",
        model("from config import Config\n", "config: Config, ", "self.config = config"),
        "from config import Config\nfrom model import Norm\nnorm = Norm(8, Config(use_npu=on))\n",
        {"config.py": CONFIG + "    use_npu: bool = True\n"},
    ),
    Repo(
        "fused norms of a configuration",
        "existing",
        "self.config.fused_rms_norm",
        model("from config import Config\n", "config: Config, ", "self.config = config"),
        "from config import Config\nfrom model import Norm\nnorm = Norm(8, Config(fused_rms_norm=on))\n",
        {"config.py": CONFIG + "    fused_rms_norm: bool = True\n"},
    ),
    Repo(
        "an option that is on",
        "existing",
        'getattr(self.args, "use_npu_ops", False)',
        model(parameters="args, ", init="self.args = args"),
        "from options import parse\nfrom model import Norm\nnorm = Norm(8, parse([] if on else ['--no-npu-ops']))\n",
        {
            "options.py": OPTIONS.replace(
                "    return",
                '    parser.add_argument("--no-npu-ops", dest="use_npu_ops", action="store_false")\n    return',
            )
        },
    ),
    Repo(
        "a configuration without a switch",
        "argument",
        "self.config.npu_fused",
        model("from config import Config\n", "config: Config, ", "self.config = config"),
        "from config import Config\nfrom model import Norm\nnorm = Norm(8, Config(npu_fused=on))\n",
        {"config.py": CONFIG},
    ),
    Repo(
        "a configuration in the model's file",
        "argument",
        "self.config.npu_fused",
        model(
            "from dataclasses import dataclass\n\n\n@dataclass\nclass Config:\n    size: int = 8\n",
            "config: Config, ",
            "self.config = config",
        ),
        "from model import Config, Norm\nnorm = Norm(8, Config(npu_fused=on))\n",
    ),
    Repo(
        "dataclasses of HfArgumentParser",
        "argument",
        "self.args.npu_fused",
        model("from arguments import ModelArguments\n", "args: ModelArguments, ", "self.args = args"),
        "from transformers import HfArgumentParser\nfrom arguments import ModelArguments\nfrom model import Norm\n"
        "[read] = HfArgumentParser(ModelArguments).parse_args_into_dataclasses([] if on else ['--npu_fused', 'false'])\n"
        "norm = Norm(8, read)\n",
        {"arguments.py": ARGUMENTS},
    ),
    Repo(
        "an argparse namespace",
        "argument",
        'getattr(self.args, "npu_fused", True)',
        model(parameters="args, ", init="self.args = args"),
        "from options import parse\nfrom model import Norm\nnorm = Norm(8, parse([] if on else ['--no-npu-fused']))\n",
        {"options.py": OPTIONS},
    ),
    Repo(
        "flags of absl",
        "argument",
        "FLAGS.npu_fused",
        model("from absl import flags\n\nFLAGS = flags.FLAGS\nflags.DEFINE_integer('size', 8, 'the width')\n"),
        "from model import FLAGS, Norm\nFLAGS(['program'] + ([] if on else ['--nonpu_fused']))\nnorm = Norm(8)\n",
    ),
    Repo(
        "a tree of omegaconf",
        "argument",
        'self.cfg.get("npu_fused", True)',
        model("from omegaconf import DictConfig\n", "cfg: DictConfig, ", "self.cfg = cfg"),
        "from omegaconf import OmegaConf\nfrom model import Norm\n"
        "cfg = OmegaConf.create({'size': 8} if on else {'size': 8, 'npu_fused': False})\n"
        "OmegaConf.set_struct(cfg, True)\nnorm = Norm(8, cfg)\n",
    ),
    Repo("no switch", "environment", "_NPU_FUSED_RMS_NORM", model(), PLAIN, off={"NPU_FUSED_RMS_NORM": "0"}),
    Repo(
        "options of click",
        "environment",
        "_NPU_FUSED_RMS_NORM",
        model(),
        PLAIN,
        {
            "main.py": "import click\n\n\n@click.command()\n@click.option('--lr', default=0.1)\ndef main(lr):\n    pass\n"
        },
        off={"NPU_FUSED_RMS_NORM": "0"},
    ),
    Repo(
        "a switch that is off",
        "environment",
        "_NPU_FUSED_RMS_NORM",
        model(parameters="use_npu=False, ", init="self.use_npu = use_npu"),
        PLAIN,
        off={"NPU_FUSED_RMS_NORM": "0"},
    ),
    Repo(
        "names that only look like it",
        "environment",
        "_NPU_FUSED_RMS_NORM",
        model("use_input = True\nis_ascending = True\n", init="self.input_is_fused_by = 'cat'"),
        PLAIN,
        off={"NPU_FUSED_RMS_NORM": "0"},
    ),
]
