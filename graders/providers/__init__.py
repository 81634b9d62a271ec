"""Who can be asked: the table of providers, where each stands, and which key goes there."""

from __future__ import annotations

from evenhand.graders.providers.table import Place, Provider, known_providers, placed

__all__ = ["Place", "Provider", "known_providers", "placed"]
