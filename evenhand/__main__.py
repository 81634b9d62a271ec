"""`evenhand`, and `python -m evenhand`: the command line, whatever fails before a verb is reached."""

from __future__ import annotations


def start() -> int:
    """Run the command line. Python ends a broken installation with 1, `gate`'s "not met": here 2."""
    try:
        from evenhand.cli.main import main

        return main()
    except Exception:
        import traceback

        traceback.print_exc()
        return 2


if __name__ == "__main__":
    raise SystemExit(start())
