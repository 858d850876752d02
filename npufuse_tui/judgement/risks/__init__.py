"""Risks with evidence: one file a risk or a family of them, found by `registry.risks`."""
