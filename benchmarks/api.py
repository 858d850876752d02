"""How long `npufuse api` takes to answer: a fresh interpreter, one question, the answer rendered.

    python benchmarks/api.py [WHEEL|FOLDER|VERSION] [--limit SECONDS]

Prints the median of eleven runs for each question; with --limit, exits with 1 when one is above it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

QUESTIONS = {
    "show": "print(api_text.show(api.lookup('npu_rms_norm', source)))",
    "search": "print(api_text.show_hits(api.search('attention', source)))",
    "list": "print(api_text.show_list(api.list_apis(source)))",
    "check": "print(api.check_replacement('torch_npu.npu_swiglu(x, dim=-1)', source))",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="?", default="2.13.0")
    parser.add_argument("--limit", type=float)
    options = parser.parse_args()
    slow = False
    for name, question in QUESTIONS.items():
        program = f"source = {options.source!r}\nfrom npufuse_tui.judgement import api, api_text\n{question}"
        times = []
        for _ in range(11):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - start)
        median = statistics.median(times)
        slow |= options.limit is not None and median > options.limit
        print(f"{name:8} median {median:.3f} s, {min(times):.3f} to {max(times):.3f}")
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
