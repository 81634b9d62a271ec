"""Who can be asked: the table of providers, where each stands, and which key goes there."""

from __future__ import annotations

from evenhand.graders.providers.place import Place, placed
from evenhand.graders.providers.table import Provider, known_providers

__all__ = ["Place", "Provider", "known_providers", "placed"]
