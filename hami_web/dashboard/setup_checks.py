"""Whether everything is set up: what can be known here is checked, the rest is called unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.utils.translation import gettext

from hami_web.core.reasons import Reason
from hami_web.core.signature import InvalidSigningKey, KeyFile
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.freshness import Freshness
from hami_web.dashboard.service_accounts import RIGHTS, Answering, lacking, worded
from hami_web.dashboard.setup_records import Check, CheckState, Recorded, bad, good, unknown
from hami_web.history.conditions import AlertCode
from hami_web.history.vitals import PULSE_S, Part, Vital
from hami_web.migration.codes import FindingCode

NAMES_MAX: Final = 10
EXTENDER_SILENT_AFTER: Final = timedelta(seconds=6 * PULSE_S)
SCHEDULER_SILENT_AFTER: Final = timedelta(hours=1)
"""A cluster where nothing asked for a GPU for so long shows nothing either way."""
SKEW_MAX: Final = timedelta(seconds=5)
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")

_FROM_THE_MIRROR: Final = (
    *("migrations", "extender", "scheduler", "owner", "webhook", "certificate"),
    *("feed", "queue", "comparison", "clocks"),
)
_WEBHOOK: Final = {FindingCode.WEBHOOK_MISSING, FindingCode.WEBHOOK_UNTRUSTED}


def api_server(freshness: Freshness) -> Check:
    """Whether the watches hear anything."""
    if freshness.age_s is None:
        return bad("api-server", freshness.error or gettext("Nothing was heard yet."))
    said = gettext("Last heard %(age)s s ago.") % {"age": freshness.age_words}
    if freshness.is_stale:
        return bad("api-server", f"{said} {freshness.error}".strip())
    return good("api-server", said)


def rights(ask: Answering | None) -> list[Check]:
    """Whether each role's ServiceAccount may do what it must; ``ask`` None: there are none."""
    return [_rights(role, ask) for role in RIGHTS]


def _rights(role: str, ask: Answering | None) -> Check:
    code = f"rights-{role}"
    if ask is None:
        said = gettext("Not asked: this process has a kubeconfig, so its roles may run as anyone.")
        return unknown(code, said)
    missing = lacking(role, settings.NAMESPACE, ask)
    if missing is None:
        return unknown(code, gettext("The API server did not answer what the role may do."))
    if missing:
        return bad(code, gettext("It may not: %(rights)s.") % {"rights": worded(missing)})
    return good(code, gettext("The API server says that it may do all that it needs."))


def nodes(current: ClusterMap | None) -> list[Check]:
    """What the watch shows of the nodes: capability, agents, what cannot be read."""
    if current is None:
        said = gettext("The cluster is not known yet.")
        return [unknown(code, said) for code in ("nodes", "agents", "capability")]
    if not current.gpu_count:
        said = gettext("No node publishes GPUs, so there is no agent to look at.")
        missing = gettext("No node publishes GPUs.")
        return [bad("nodes", missing), unknown("agents", said), unknown("capability", said)]
    records = current.records.values()
    silent = [each.name for each in records if each.closed is Reason.NODE_STALE]
    unpublished = [each.name for each in records if each.closed is Reason.NODE_UNREGISTERED]
    unreadable = [each.name for each in records if each.refused]
    count = {"nodes": len(current.nodes), "gpus": current.gpu_count}
    return [
        _named("nodes", unpublished, gettext("%(nodes)s nodes publish %(gpus)s GPUs.") % count),
        _named("agents", silent, gettext("No node of %(nodes)s is silent.") % count),
        _named("capability", unreadable, gettext("That of all %(gpus)s GPUs is whole.") % count),
    ]


def _named(code: str, names: Sequence[str], otherwise: str) -> Check:
    if not names:
        return good(code, otherwise)
    more = "" if len(names) <= NAMES_MAX else f" … ({len(names)})"
    return bad(code, ", ".join(names[:NAMES_MAX]) + more)


def recorded(known: Recorded | None) -> list[Check]:
    """What the mirror says of extender, scheduler, worker and clocks; None: it cannot be read."""
    if known is None:
        said = gettext("The database does not answer.")
        return [bad("database", said), *(unknown(code, said) for code in _FROM_THE_MIRROR)]
    return [
        good("database", gettext("It was read for this page.")),
        _migrations(known.unapplied),
        _extender(known),
        _scheduler(known),
        _owner(known),
        _webhook(known),
        _certificate(),
        *(_vital(vital) for vital in known.vitals),
        _clocks(known),
    ]


def _migrations(unapplied: tuple[str, ...]) -> Check:
    if unapplied:
        return _named("migrations", unapplied, "")
    return good("migrations", gettext("None is missing."))


def _extender(known: Recorded) -> Check:
    if known.extender_at is None:
        return unknown("extender", gettext("The worker has never heard it; only it asks."))
    said = gettext("It last answered the worker at %(at)s.") % {"at": written(known.extender_at)}
    if known.now - known.extender_at <= EXTENDER_SILENT_AFTER:
        return good("extender", said)
    return bad("extender", said) if known.worker_works else unknown("extender", said)


def _scheduler(known: Recorded) -> Check:
    if known.decided_at is None:
        return unknown("scheduler", gettext("The extender was never asked, as far as is known."))
    said = gettext("The extender last decided at %(at)s.") % {"at": written(known.decided_at)}
    if known.now - known.decided_at <= SCHEDULER_SILENT_AFTER:
        return good("scheduler", said)
    quiet = gettext("Since then nothing asked for a GPU, or nobody asks the extender.")
    return unknown("scheduler", f"{said} {quiet}")


def _owner(known: Recorded) -> Check:
    if AlertCode.OTHER_OWNER in known.alerts:
        return bad("owner", gettext("There is an alert that names the node and the other owner."))
    if not known.worker_works:
        return unknown("owner", gettext("The worker looks for it, and does not work now."))
    return good("owner", gettext("No agent has told of another owner."))


def _vital(vital: Vital) -> Check:
    code = {Part.FEED: "feed", Part.QUEUE: "queue", Part.COMPARISON: "comparison"}[vital.part]
    if vital.at is None:
        return bad(code, gettext("It never happened: the worker was never run."))
    said = gettext("Last at %(at)s.") % {"at": written(vital.at)}
    return bad(code, said) if vital.silent else good(code, said)


def _clocks(known: Recorded) -> Check:
    """The database's clock against ours, and that the worker is not ahead of us."""
    if known.database_now is None:
        return unknown("clocks", gettext("The worker has written no time yet."))
    apart = abs(known.now - known.database_now)
    times = [vital.at for vital in known.vitals if vital.at is not None]
    ahead = max((at - known.now for at in times), default=timedelta(0))
    most = max(apart, ahead)
    said = gettext("Database, worker and this process are at most %(seconds)s s apart.")
    words = said % {"seconds": f"{max(most.total_seconds(), 0.0):.1f}"}
    return bad("clocks", words) if most > SKEW_MAX else good("clocks", words)


def _webhook(known: Recorded) -> Check:
    """By the newest readiness check, which reads what the web role may not."""
    looked = known.readiness
    if looked is None:
        return unknown("webhook", gettext("A readiness check reads it, and none was made lately."))
    said = gettext("Read by the readiness check of %(at)s.") % {"at": written(looked.at)}
    if looked.codes & _WEBHOOK:
        missing = FindingCode.WEBHOOK_MISSING in looked.codes
        why = gettext("It is missing.") if missing else gettext("It names no authority.")
        return bad("webhook", f"{why} {said}")
    if FindingCode.NOT_READ in looked.codes:
        return unknown("webhook", gettext("The last readiness check could not read everything."))
    return good("webhook", said)


def _certificate() -> Check:
    said = gettext("Only the extender reads it, and says in its log where the two differ.")
    return unknown("certificate", said)


def signing(alerts: frozenset[str] | None) -> Check:
    """Whether keys are here, and no reservation was seen without a signature."""
    if alerts is not None and AlertCode.RESERVATION_UNSIGNED in alerts:
        return bad("signing", gettext("There is an alert about a reservation without signature."))
    if settings.SIGNING_KEYS is None:
        said = gettext("This process was given no keys; extender and agents have their own.")
        return unknown("signing", said)
    try:
        KeyFile(settings.SIGNING_KEYS)
    except InvalidSigningKey as error:
        return bad("signing", str(error))
    return good("signing", gettext("The keys can be read, and no alert tells otherwise."))


def own_settings(host: str) -> list[Check]:
    """The settings of this process, reached as ``host`` (with or without port)."""
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    everyone = gettext("Every host name is answered.")
    open_hosts = "*" in settings.ALLOWED_HOSTS
    over_loopback = name in LOOPBACK
    checks = [
        _kept("hosts", not open_hosts, gettext("HAMI_ALLOWED_HOSTS names them."), everyone),
        _kept(
            "cookies",
            settings.WEB_HTTPS or over_loopback,
            gettext("HAMI_WEB_HTTPS is on.")
            if settings.WEB_HTTPS
            else gettext("You reach it over loopback, where nobody listens."),
            gettext("HAMI_WEB_HTTPS is off, and you do not reach it over loopback."),
        ),
        _kept(
            "secret",
            settings.SECRET_KEY_IS_LASTING,
            gettext("HAMI_SECRET_KEY is set."),
            gettext("HAMI_SECRET_KEY is not set: everyone signs in again after a restart."),
        ),
        _kept(
            "debug",
            not settings.DEBUG,
            gettext("HAMI_DEBUG is off."),
            gettext("HAMI_DEBUG is on."),
        ),
    ]
    return list(checks)


def _kept(code: str, holds: bool, yes: str, no: str) -> Check:  # noqa: FBT001  # the finding itself
    return good(code, yes) if holds else bad(code, no)


def written(at: datetime) -> str:
    """A time as all pages write it."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def count(checks: Iterable[Check], state: CheckState) -> int:
    """How many checks ended so."""
    return sum(check.state is state for check in checks)
