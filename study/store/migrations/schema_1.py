"""The tables as version 0.1.0 wrote them: where every store's history begins."""

revision = "1"
down_revision = None


def upgrade() -> None:
    """Nothing goes before it."""
