"""`python -m npufuse_tui` is `npufuse`."""

from npufuse_tui.cli import main

if __name__ == "__main__":
    main()
