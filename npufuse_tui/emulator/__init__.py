"""torch_npu without an NPU, inside child processes.

`environment.emulated` gives the environment of a child that sees it; `run.run` runs a command so. What the child
imports is in `runtime/` and is never imported here.
"""
