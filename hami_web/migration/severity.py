"""What a finding means for a take-over."""

from __future__ import annotations

from django.db import models


class Severity(models.TextChoices):
    """From what stops a take-over to what is only good to know."""

    BLOCKER = "blocker", "it must be mended first"
    WARNING = "warning", "it should be known"
    NOTE = "note", "nothing to do"
