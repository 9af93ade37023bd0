"""Rows of people, of their tokens, and of what was done."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models import Q

from hami_web.access.caller import Source
from hami_web.access.roles import Role

NAME_MAX = 150
ROLES = [(role.value, role.value) for role in Role]
TEXT_MAX = 500


class UserManager(BaseUserManager["User"]):
    """Finds people by name; makes none without a role of its own choice."""


class User(AbstractBaseUser):
    """A person who signs in: by a password kept here, or by an OIDC provider.

    ``role`` and ``namespaces`` are those of local people: without role nothing is allowed, without
    list the policy's namespaces of the role are seen, and ``["*"]`` is every one. ``groups`` are
    those that the provider told at the last sign-in: what they give is decided anew each time.
    ``subject`` is the provider's lasting name of a person: issuer and ``sub``.
    """

    username = models.CharField(max_length=NAME_MAX, unique=True)
    source = models.CharField(
        max_length=16, choices=[(s.value, s.value) for s in (Source.LOCAL, Source.OIDC)]
    )
    subject = models.CharField(max_length=TEXT_MAX, null=True, blank=True, unique=True)  # unique
    role = models.CharField(max_length=16, choices=ROLES, blank=True, default="")
    namespaces = models.JSONField(null=True, blank=True)
    groups = models.JSONField(default=list, blank=True)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "username"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects: ClassVar[UserManager] = UserManager()

    class Meta:
        ordering = ["username"]
        constraints = [
            models.CheckConstraint(condition=Q(role__in=["", *Role]), name="user_role_known"),
            models.CheckConstraint(
                condition=Q(source=Source.LOCAL, subject=None)
                | Q(source=Source.OIDC, subject__isnull=False, role=""),
                name="user_source_whole",
            ),
        ]

    def __str__(self) -> str:
        return self.username


class ApiToken(models.Model):
    """A token by its digest; ``name`` says whose it is.

    A token of a person (``owner``) can do no more than they can. ``namespaces`` narrows what it
    sees: None leaves it to owner and role, ``["*"]`` is every one.
    """

    name = models.CharField(max_length=128, unique=True)
    digest = models.CharField(max_length=64, unique=True)
    role = models.CharField(max_length=16, choices=ROLES)
    namespaces = models.JSONField(null=True, blank=True)
    owner = models.ForeignKey(User, models.CASCADE, null=True, blank=True, related_name="tokens")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=Q(role__in=list(Role)), name="token_role_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Outcome(models.TextChoices):
    """How an action ended. ``begun`` stands before the end: alone it means an interruption."""

    BEGUN = "begun", "begun"
    DONE = "done", "done"
    REFUSED = "refused", "refused"
    FAILED = "failed", "failed"


class AppendOnly(TypeError):
    """An audit entry was to be changed or deleted."""


class AuditEntry(models.Model):
    """What someone did: written once; the database refuses to change or delete it.

    ``actor`` with ``source`` is who, ``address`` from where, ``verb`` with kind, namespace and name
    what and on what. ``request_id`` joins the entries of one request with the log.
    """

    at = models.DateTimeField()
    actor = models.CharField(max_length=TEXT_MAX)
    source = models.CharField(max_length=16)
    role = models.CharField(max_length=16, blank=True, default="")
    address = models.CharField(max_length=64, blank=True, default="")
    verb = models.CharField(max_length=64)
    kind = models.CharField(max_length=64, blank=True, default="")
    namespace = models.CharField(max_length=253, blank=True, default="")
    name = models.CharField(max_length=TEXT_MAX, blank=True, default="")
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    outcome = models.CharField(max_length=16, choices=Outcome.choices)
    detail = models.CharField(max_length=TEXT_MAX, blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["-at", "-id"], name="audit_by_time"),
            models.Index(fields=["actor", "-at"], name="audit_by_actor"),
            models.Index(fields=["verb", "-at"], name="audit_by_verb"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%F %T} {self.actor} {self.verb} {self.name}: {self.outcome}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert, once."""
        if not self._state.adding:
            raise AppendOnly("audit entries are never changed")
        super().save(*args, **{**kwargs, "force_insert": True})

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Never one by one; pruning has its own way (audit.prune_audit)."""
        raise AppendOnly("audit entries are never deleted one by one")


class AuditPruning(models.Model):
    """While there is such a row, the database lets entries older than ``before`` be deleted."""

    before = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.before:%F %T}"


class SignInFailure(models.Model):
    """Failed sign-ins of one name, one address, or both together; ``key`` is their digest."""

    key = models.CharField(max_length=80, unique=True)
    count = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.key}: {self.count}"
