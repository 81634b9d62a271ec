"""The annotation app: people read units and label them, one rubric at a time."""

from __future__ import annotations

from evenhand.annotate_app.serve import command, serve

__all__ = ["command", "serve"]
