"""`evenhand` and `python -m evenhand`: the command line, even where it cannot begin."""

from __future__ import annotations

import gc
import os

_RARELY = 100_000
"""What is imported stays: Python need not look for rubbish after every 700 new objects."""


def start() -> int:
    """Run the command line. Python would end a broken installation with 1, `gate`'s "not met"."""
    gc.set_threshold(_RARELY)
    # Our products of matrices are too skinny to be shared by threads, which wait at full speed.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from evenhand.cli.main import main

        return main()
    except Exception:
        import traceback

        traceback.print_exc()
        return 2
    finally:
        gc.freeze()  # nor at the end, when all of it goes


if __name__ == "__main__":
    raise SystemExit(start())
