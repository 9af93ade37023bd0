"""Who asks, and what they may: bearer tokens, TokenReview and SubjectAccessReview as tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from hami_web.simulator import problems
from hami_web.simulator.documents import JsonObject

ADMIN_GROUP = "system:masters"


@dataclass(frozen=True, slots=True)
class User:
    """A person or ServiceAccount as authentication names it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def info(self) -> JsonObject:
        """``authentication.k8s.io`` UserInfo."""
        document: JsonObject = {
            "username": self.name,
            "groups": [*self.groups, "system:authenticated"],
        }
        if self.uid:
            document["uid"] = self.uid
        if self.extra:
            document["extra"] = {key: list(values) for key, values in self.extra}
        return document


ANYONE = User("system:admin", (ADMIN_GROUP,))
"""Who every request is from while no tokens are configured."""


@dataclass(frozen=True, slots=True)
class AccessRule:
    """``subject`` (a user or group name) may use ``verbs`` on ``resource`` in ``namespace``.

    ``resource`` is a plural with its subresource, such as ``pods/binding``; ``*`` stands for all
    in ``verbs`` and ``resource``, and an empty ``namespace`` for every namespace.
    """

    subject: str
    verbs: tuple[str, ...]
    resource: str
    group: str = ""
    namespace: str = ""

    def allows(self, user: User, asked: Access) -> bool:
        return (
            self.subject in (user.name, *user.groups, "system:authenticated")
            and ("*" in self.verbs or asked.verb in self.verbs)
            and (self.resource in ("*", asked.resource))
            and (self.resource == "*" or self.group == asked.group)
            and self.namespace in ("", asked.namespace)
        )


@dataclass(frozen=True, slots=True)
class Access:
    """One question for authorization."""

    verb: str
    group: str
    resource: str
    namespace: str


@dataclass(slots=True)
class Identities:
    """Tokens and rules. Without ``tokens`` everyone is an admin; ``enforce`` turns rules into 403.

    Members of ``system:masters`` may do everything.
    """

    tokens: dict[str, User] = field(default_factory=dict)
    rules: list[AccessRule] = field(default_factory=list)
    enforce: bool = False

    def authenticate(self, authorization: str) -> User:
        """The user of an ``Authorization`` header; raises 401."""
        scheme, _, token = authorization.partition(" ")
        if not self.tokens:
            return ANYONE
        user = self.tokens.get(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise problems.unauthorized()
        return user

    def permits(self, user: User, asked: Access) -> bool:
        if ADMIN_GROUP in user.groups:
            return True
        return any(rule.allows(user, asked) for rule in self.rules)

    def review_token(self, review: JsonObject) -> JsonObject:
        """Answer a ``TokenReview``."""
        user = self.tokens.get(str((review.get("spec") or {}).get("token") or ""))
        status: JsonObject = {"authenticated": user is not None}
        if user is None:
            status["error"] = "[invalid bearer token]"
            status["user"] = {}
        else:
            status["user"] = user.info()
        return review | {"metadata": {"creationTimestamp": None}, "status": status}

    def review_access(self, review: JsonObject) -> JsonObject:
        """Answer a ``SubjectAccessReview`` about a resource; raises 422 when there is none."""
        spec = review.get("spec") or {}
        attributes = spec.get("resourceAttributes")
        if not isinstance(attributes, dict):
            cause = ("spec.resourceAttributes", "Invalid value: null: must be specified")
            raise problems.invalid("SubjectAccessReview", "", [cause])
        resource = str(attributes.get("resource") or "")
        if attributes.get("subresource"):
            resource = f"{resource}/{attributes['subresource']}"
        asked = Access(
            verb=str(attributes.get("verb") or ""),
            group=str(attributes.get("group") or ""),
            resource=resource,
            namespace=str(attributes.get("namespace") or ""),
        )
        user = User(str(spec.get("user") or ""), tuple(spec.get("groups") or ()))
        return review | {
            "metadata": {"creationTimestamp": None},
            "status": {"allowed": self.permits(user, asked)},
        }
