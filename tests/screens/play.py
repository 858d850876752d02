"""Runs the app over a recorded loop in a real terminal: `python play.py FOLDER [LANGUAGE]`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fake_loop import FakeDoors

from npufuse_tui.app import NpufuseApp, Start
from npufuse_tui.language import set_language

if __name__ == "__main__":
    set_language(sys.argv[2] if len(sys.argv) > 2 else "en")
    app = NpufuseApp(FakeDoors(Path(sys.argv[1])), Start(ascii="--ascii" in sys.argv))
    app.run()
    sys.exit(app.return_code or 0)
