"""The tables as version 0.1.0 wrote them: the beginning of every store's history."""

revision = "1"
down_revision = None


def upgrade() -> None:
    """Do nothing: there is no earlier schema."""
