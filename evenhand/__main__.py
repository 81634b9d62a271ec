"""`evenhand` and `python -m evenhand`: the command line, even where it cannot begin."""

from __future__ import annotations


def start() -> int:
    """Run the command line. Python would end a broken installation with 1, `gate`'s "not met"."""
    try:
        from evenhand.cli.main import main

        return main()
    except Exception:
        import traceback

        traceback.print_exc()
        return 2


if __name__ == "__main__":
    raise SystemExit(start())
