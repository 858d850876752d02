"""What a person or a script is given to read: JSON, tables, Markdown, SARIF, HTML.

Every function turns the dataclasses of `npufuse_tui.model` into text; only `session_report` writes files.
"""
