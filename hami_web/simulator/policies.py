"""Validating admission policies, judged as the API server judges them (admissionregistration v1).

Of a policy: constraints by resource, match conditions, variables and validations. Parameters,
selectors and audit annotations are refused when a request meets them, as nothing here uses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from hami_web.simulator import problems
from hami_web.simulator.admission import Admitted, review_of, rule_matches
from hami_web.simulator.cel import Expression, parse
from hami_web.simulator.cel_values import CelError
from hami_web.simulator.documents import JsonObject
from hami_web.simulator.problems import ApiProblem
from hami_web.simulator.resources import POLICIES, POLICY_BINDINGS
from hami_web.simulator.store import Store

_NOT_HERE: Final = ("paramKind", "auditAnnotations")
_CODES: Final = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}


class Policies:
    """All policies that are bound, in order of the bindings' names."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def check(self, document: JsonObject, write: Admitted) -> None:
        """Raises what the client is answered when a policy denies the write."""
        _, bindings = self._store.listing(POLICY_BINDINGS)
        for binding in bindings:
            spec = binding.document["spec"]
            if "Deny" not in spec.get("validationActions", []):
                continue
            policy = self._policy(str(spec["policyName"]))
            if policy is not None:
                bound = str(binding.document["metadata"]["name"])
                _judge(policy, bound, document, write)

    def _policy(self, name: str) -> JsonObject | None:
        """A binding may come before its policy; until then it binds nothing."""
        try:
            return self._store.get(POLICIES, ("", name)).document
        except ApiProblem:
            return None


class _Variables(Mapping[str, Any]):
    """Values of a policy's variables, each worked out when it is first asked for."""

    def __init__(self, expressions: Mapping[str, Expression], scope: Mapping[str, Any]) -> None:
        self._expressions = expressions
        self._scope = dict(scope) | {"variables": self}
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._expressions[name].evaluate(self._scope)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._expressions)

    def __len__(self) -> int:
        return len(self._expressions)


def _judge(policy: JsonObject, bound: str, document: JsonObject, write: Admitted) -> None:
    spec, name = policy["spec"], str(policy["metadata"]["name"])
    rules = (spec.get("matchConstraints") or {}).get("resourceRules") or []
    if not any(rule_matches(rule, write) for rule in rules):
        return
    strict = spec.get("failurePolicy", "Fail") == "Fail"
    try:
        denied = _denial(spec, document, write)
    except CelError as error:
        denied = {"message": f"expression failed: {error}"} if strict else None
    if denied is None:
        return
    reason = str(denied.get("reason") or "Invalid")
    why = f"ValidatingAdmissionPolicy '{name}' with binding '{bound}' denied request: "
    why += str(denied.get("message") or f"failed expression: {denied.get('expression')}")
    if reason == "Forbidden":
        raise problems.forbidden(write.address.resource, write.address.name, why)
    raise ApiProblem(_CODES.get(reason, 422), reason, why)


def _denial(spec: JsonObject, document: JsonObject, write: Admitted) -> JsonObject | None:
    """The first validation that does not hold. Raises :class:`CelError`."""
    for key in _NOT_HERE:
        if spec.get(key):
            raise CelError(f"spec.{key} is not known to this simulator")
    request = review_of(document, write)["request"]
    scope = {"object": document, "oldObject": write.old, "request": request}
    for condition in spec.get("matchConditions") or []:
        if not _parsed(condition["expression"]).truth(scope):
            return None
    expressions = {v["name"]: _parsed(v["expression"]) for v in spec.get("variables") or []}
    scope["variables"] = _Variables(expressions, scope)
    for validation in spec.get("validations") or []:
        if not _parsed(validation["expression"]).truth(scope):
            return dict(validation)
    return None


@lru_cache(maxsize=256)
def _parsed(source: str) -> Expression:
    return parse(source)
