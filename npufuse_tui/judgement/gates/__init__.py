"""The switches in front of a fused branch: those that a repo has already, and those that can be added to it."""
