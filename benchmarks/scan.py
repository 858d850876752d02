"""How long a scan of the transformers package takes, against one parse of its files in one process.

    python benchmarks/scan.py [FOLDER] [--jobs N]

Three times are measured in processes of their own: `ast.parse` of every Python file, a scan without a cache, and the
same scan again with one. Printed with their ratios and the largest memory of any process of the scan.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PARSE = """
import ast, json, sys, time
from pathlib import Path
files = sorted(Path(sys.argv[1]).rglob("*.py"))
began = time.perf_counter()
size = bad = 0
for path in files:
    data = path.read_bytes()
    size += len(data)
    try:
        ast.parse(data)
    except SyntaxError:
        bad += 1
print(json.dumps({"seconds": time.perf_counter() - began, "files": len(files), "bytes": size, "unparsed": bad}))
"""

SCAN = """
import json, resource, sys, time
from pathlib import Path
from npufuse_tui.scan.scanner import ScanOptions, scan
began = time.perf_counter()
result = scan(Path(sys.argv[1]), ScanOptions(jobs=int(sys.argv[2]), use_cache=sys.argv[3] == "cache"))
seconds = time.perf_counter() - began
largest = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps({"seconds": seconds, "candidates": len(result.candidates), "parsed": result.parsed,
                  "cached": result.cached, "skipped": len(result.skipped), "kilobytes": largest}))
"""


def run(code: str, *arguments: str, environment: dict[str, str] | None = None) -> dict[str, float]:
    """The last line that the code prints, read as JSON. Raises CalledProcessError when it fails."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    read: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return read


def installed_transformers() -> Path:
    import importlib.util

    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        raise SystemExit(
            "transformers is not installed here; name a folder to scan, or pip install transformers==5.23.0"
        )
    return Path(spec.origin).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=None)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    folder = str(options.folder or installed_transformers())
    with tempfile.TemporaryDirectory() as cache:
        fresh = {"XDG_CACHE_HOME": cache}
        parsed = run(PARSE, folder)
        first = run(SCAN, folder, str(options.jobs), "no-cache", environment=fresh)
        run(SCAN, folder, str(options.jobs), "cache", environment=fresh)
        again = run(SCAN, folder, str(options.jobs), "cache", environment=fresh)
    print(f"{folder}: {parsed['files']:.0f} files, {parsed['bytes'] / 1e6:.1f} MB")
    print(f"one parse of all files, one process   {parsed['seconds']:8.2f} s")
    for what, took in ((f"scan, {options.jobs} processes, no cache", first), ("scan again, with its cache", again)):
        ratio = took["seconds"] / parsed["seconds"]
        print(
            f"{what:<37} {took['seconds']:8.2f} s  {ratio:5.2f} of the parse; {took['candidates']:.0f} candidates, "
            f"{took['cached']:.0f} files from the cache, {took['skipped']:.0f} skipped, "
            f"{took['kilobytes'] / 1024:.0f} MB in the largest process"
        )


if __name__ == "__main__":
    main()
