"""Rows of API tokens: who may read, until when. The token itself is stored nowhere."""

from __future__ import annotations

from django.db import models


class ApiToken(models.Model):
    """A token by its digest; ``name`` says whose it is."""

    name = models.CharField(max_length=128, unique=True)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
