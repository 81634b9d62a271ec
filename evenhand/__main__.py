"""`evenhand` and `python -m evenhand`: the command line, with exit code 2 even if it fails to
import.
"""

import gc
import os

# Imported objects stay, so Python need not collect garbage after every 700 new ones.
gc.set_threshold(100_000)


def start() -> int:
    """Run the command line; return 2 if its import fails (1 would be "not met" of `gate`)."""
    # Our matrices are narrow: BLAS threads would only spin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from evenhand.cli.main import main

        return main()
    except Exception:
        import traceback

        traceback.print_exc()
        return 2
    finally:
        gc.freeze()  # no garbage collection at the end either


if __name__ == "__main__":
    raise SystemExit(start())
