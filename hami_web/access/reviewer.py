"""What the API server says of tokens and of what users may see, remembered for a short while."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

from django.conf import settings

from hami_web.access.caller import KubernetesUser
from hami_web.access.errors import IdentityUnavailable
from hami_web.access.expiring import ExpiringAnswers
from hami_web.cluster.client import OfficialConnection
from hami_web.cluster.errors import ClusterError
from hami_web.cluster.reviews import Asked, ReviewedUser, may, may_list_pods, review_token
from hami_web.cluster.transport import Transport

logger = logging.getLogger(__name__)

TOKENS_MAX: Final = 1_000
ANSWERS_MAX: Final = 100_000
RIGHTS_MAX: Final = 1_000
REFUSED_S: Final = 10.0
"""A token that was refused is asked about again after this time."""
UNKNOWN_S: Final = 5.0
"""A question that nobody answered counts as no for this time, and is then asked again."""
AT_ONCE: Final = 16
EVERYWHERE: Final = ""


class Reviewer:
    """Asks the API server; ``keep_s`` is how long its answers are believed."""

    def __init__(self, connection: OfficialConnection, keep_s: float) -> None:
        self._connection = connection
        self._transport = Transport(connection, user_agent="hami-web/access")
        self._keep_s = keep_s
        self._users: ExpiringAnswers[str, KubernetesUser | None] = ExpiringAnswers(TOKENS_MAX)
        self._seen: ExpiringAnswers[tuple[KubernetesUser, str], bool] = ExpiringAnswers(ANSWERS_MAX)
        self._rights: ExpiringAnswers[tuple[str, Asked], bool | None] = ExpiringAnswers(RIGHTS_MAX)
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="access-review")

    def user_of(self, token: str) -> KubernetesUser | None:
        """Whose token it is; None where the API server refuses it.

        Raises IdentityUnavailable where it does not answer.
        """
        digest = sha256(token.encode()).hexdigest()
        known = self._users.get(digest)
        if known is not None:
            return known[0]
        try:
            found = review_token(self._transport, token)
        except ClusterError as error:
            logger.warning("a token could not be reviewed: %s", error)
            raise IdentityUnavailable("the API server does not answer now") from error
        if found is None:
            return self._users.put(digest, None, REFUSED_S)
        user = KubernetesUser(found.username, tuple(found.groups or ()), found.uid)
        return self._users.put(digest, user, self._keep_s)

    def sees_everything(self, user: KubernetesUser) -> bool:
        """Whether a user may list Pods in all namespaces."""
        return self.sees(user, EVERYWHERE)

    def sees(self, user: KubernetesUser, namespace: str) -> bool:
        """Whether a user may list the Pods of a namespace; no where nobody answers."""
        known = self._seen.get((user, namespace))
        if known is not None:
            return known[0]
        asked = ReviewedUser(user.name, user.uid, list(user.groups))
        try:
            answer, keep_s = may_list_pods(self._transport, asked, namespace), self._keep_s
        except ClusterError as error:
            logger.warning("what %s may see could not be reviewed: %s", user.name, error)
            answer, keep_s = False, UNKNOWN_S
        return self._seen.put((user, namespace), answer, keep_s)

    def visible(self, user: KubernetesUser, namespaces: Iterable[str]) -> frozenset[str]:
        """Those of the namespaces that a user may see; new questions are asked side by side."""
        asked = sorted(set(namespaces))
        answers = self._threads.map(partial(self.sees, user), asked)
        return frozenset(name for name, seen in zip(asked, answers, strict=True) if seen)

    def rights(self, asked: Iterable[tuple[str, Asked]]) -> dict[tuple[str, Asked], bool | None]:
        """Whether users by name have rights, asked side by side; None where nobody answers."""
        questions = list(asked)
        answers = self._threads.map(lambda item: self._has(*item), questions)
        return dict(zip(questions, answers, strict=True))

    def _has(self, name: str, right: Asked) -> bool | None:
        known = self._rights.get((name, right))
        if known is not None:
            return known[0]
        answer: bool | None
        try:
            answer, keep_s = may(self._transport, name, right), self._keep_s
        except ClusterError as error:
            logger.warning("what %s may do could not be reviewed: %s", name, error)
            answer, keep_s = None, UNKNOWN_S
        return self._rights.put((name, right), answer, keep_s)

    def close(self) -> None:
        """End its threads and connections."""
        self._threads.shutdown(cancel_futures=True)
        self._connection.close()


def reviewer() -> Reviewer:
    """The one of this process. Raises IdentityUnavailable without a usable configuration."""
    key = (settings.KUBECONFIG, settings.ACCESS_CACHE_SECONDS)
    if key not in _reviewers:
        close_reviewer()
        _reviewers[key] = _build(*key)
    return _reviewers[key]


def close_reviewer() -> None:
    """End that of this process; the next question makes another."""
    while _reviewers:
        _reviewers.popitem()[1].close()


_reviewers: dict[tuple[Path | None, float], Reviewer] = {}


def _build(kubeconfig: Path | None, keep_s: float) -> Reviewer:
    try:
        return Reviewer(OfficialConnection(kubeconfig), keep_s)
    except ClusterError as error:
        raise IdentityUnavailable(str(error)) from error
