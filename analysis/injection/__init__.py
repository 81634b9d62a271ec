"""Prompt-injection audit: how far texts that try to influence a grader succeed."""

from __future__ import annotations

from evenhand.analysis.injection.findings import Audit, audit_of, audits
from evenhand.analysis.injection.rows import add_injection_rows

__all__ = ["Audit", "add_injection_rows", "audit_of", "audits"]
