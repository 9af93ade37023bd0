"""Django settings, read from the environment; the only place that names its variables.

Every variable has a default that works, or the process says which one it lacks. A secret can be
given as a file by the same name with ``_FILE``.
"""

from __future__ import annotations

import contextlib
import secrets
import sys
from pathlib import Path
from typing import Final

from hami_web import environment
from hami_web.access_settings import *  # noqa: F403  # the part about people
from hami_web.access_settings import BASE_PATH
from hami_web.core.faults import Fault
from hami_web.core.tracing import export_to
from hami_web.database import parse_database_url
from hami_web.logs import FORMATS, role_of

BASE_DIR: Final = Path(__file__).resolve().parent.parent
# Templates and static files: beside the package in a checkout, inside of it where it is installed.
SHIPPED_DIR: Final = next(
    folder for folder in (BASE_DIR, BASE_DIR / "hami_web") if (folder / "templates").is_dir()
)


def _database(name: str) -> dict[str, object]:
    """The database of a URL, which may be a secret; by default a file in the data folder."""
    url = environment.secret(
        name,
        f"sqlite:///{DATA_DIR / 'hami.sqlite3'}",
        "sqlite:///PATH, postgresql://USER:PASSWORD@HOST:PORT/NAME",
    )
    try:
        return parse_database_url(url)
    except ValueError as error:
        raise environment.Refused(Fault.SETTING, f"{name}: {error}") from error


# Where the database and the queue lie unless they are elsewhere by URL; a local disk, never NFS.
DATA_DIR = Path(environment.text("HAMI_DATA_DIR", str(BASE_DIR / "var"), "a path")).absolute()

# --- Django -------------------------------------------------------------------------------------

DEBUG = environment.flag("HAMI_DEBUG")
# Nothing that outlives a process is signed by the extender; a role that needs a lasting key checks
# for it (checks.py).
SECRET_KEY_IS_LASTING = bool(environment.secret("HAMI_SECRET_KEY"))
SECRET_KEY = environment.secret("HAMI_SECRET_KEY") or secrets.token_urlsafe(48)
ALLOWED_HOSTS = list(environment.words("HAMI_ALLOWED_HOSTS", default="127.0.0.1,localhost"))
# The extender knows no database and loads nothing of the roles that have one; manage.py says so.
ROLES = ("ALL", "EXTENDER")
ROLE = environment.choice("HAMI_ROLE", ROLES)
INSTALLED_APPS: list[str] = [
    "hami_web.extender",
    "hami_web.dashboard",
    "hami_web.simulator",
    "django.contrib.staticfiles",
]
if ROLE == "ALL":
    AUTH_USER_MODEL = "access.User"
    INSTALLED_APPS += [
        "hami_web.access",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "hami_web.inventory",
        "hami_web.reservations",
        "hami_web.history",
        "hami_web.migration",
        "hami_web.handover",
        "hami_web.sync",
        "hami_web.api",
        "rest_framework",
        "drf_spectacular",
        "drf_spectacular_sidecar",
    ]
ROOT_URLCONF = "hami_web.urls"
DATABASES = {"default": _database("HAMI_DATABASE_URL")} if ROLE == "ALL" else {}
if ROLE == "ALL":
    # Where it cannot be made, the database says so to whoever opens it.
    with contextlib.suppress(OSError):
        DATA_DIR.mkdir(parents=True, exist_ok=True)
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"

LOG_LEVELS = ("INFO", "DEBUG", "WARNING", "ERROR")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {
            "()": "hami_web.logs.TextFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(threadName)s: %(message)s",
        },
        "json": {"()": "hami_web.logs.JsonFormatter", "role": role_of(sys.argv)},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": environment.choice("HAMI_LOG_FORMAT", FORMATS),
        }
    },
    "root": {"handlers": ["stderr"], "level": environment.choice("HAMI_LOG_LEVEL", LOG_LEVELS)},
}

# Where spans are sent (OTLP over HTTP); empty: there are none.
TRACES_ENDPOINT = environment.endpoint("OTEL_EXPORTER_OTLP_ENDPOINT")
export_to(TRACES_ENDPOINT, role_of(sys.argv))

# --- Kubernetes ---------------------------------------------------------------------------------

# Empty: the Pod's ServiceAccount.
KUBECONFIG = environment.path("HAMI_KUBECONFIG")
# Keys of node labels, the first that a node has names its pool on the map.
POOL_LABELS = environment.words(
    "HAMI_POOL_LABELS",
    default="karpenter.sh/nodepool,cloud.google.com/gke-nodepool,eks.amazonaws.com/nodegroup,"
    "kubernetes.azure.com/agentpool",
)
SCHEDULER_NAME = environment.text("HAMI_SCHEDULER_NAME", "hami-scheduler")
# Where the Leases of extender and agents are.
NAMESPACE = environment.text("HAMI_NAMESPACE", "hami-system")
# Image of the lifecycle test's Pods; empty: the agent's own, which the node has.
LIFECYCLE_IMAGE = environment.text("HAMI_LIFECYCLE_IMAGE")
# Our own Pod, from the downward API; its label tells a Service who leads.
POD_NAME = environment.text("HAMI_POD_NAME")
# Off only where no second extender can exist.
LEADER_ELECTION = environment.flag("HAMI_LEADER_ELECTION", "true")
# A leader that is silent for so long is followed by another replica.
LEASE_SECONDS = int(environment.number("HAMI_LEASE_SECONDS", 10, least=3, most=120))
# Calls to the API server in a second, and at once; binds go before everything else.
KUBE_QPS = environment.number("HAMI_KUBE_QPS", 200, least=1, most=10_000)
KUBE_BURST = int(environment.number("HAMI_KUBE_BURST", 400, least=2, most=20_000))

# --- extender -----------------------------------------------------------------------------------

EXTENDER_LISTEN = environment.text("HAMI_EXTENDER_LISTEN", "127.0.0.1:8010", "HOST:PORT, unix:PATH")
EXTENDER_THREADS = int(environment.number("HAMI_EXTENDER_THREADS", 128, least=4, most=1024))
EXTENDER_TLS_CERT = environment.path("HAMI_EXTENDER_TLS_CERT")
EXTENDER_TLS_KEY = environment.path("HAMI_EXTENDER_TLS_KEY")
# Longest time that /bind waits for the node; below kube-scheduler's httpTimeout (30 s).
BIND_WAIT_S = environment.number("HAMI_BIND_WAIT_S", 20, least=0, most=300)
# HAMi's series under their older names, beside the new ones.
LEGACY_METRICS = environment.flag("HAMI_LEGACY_METRICS")
# Keys that sign reservations, one a line; read again when it changes. Empty: unsigned.
SIGNING_KEYS = environment.path("HAMI_SIGNING_KEYS")
# The cluster's policy file, which the extender reads again when it changes.
POLICY_FILE = environment.path("HAMI_POLICY_FILE")
# Its section "scheduling"; checked where it is used.
SCHEDULING_POLICY = environment.policy_section("HAMI_POLICY_FILE", "scheduling")
# Section "admission" of the same file.
ADMISSION_POLICY = environment.policy_section("HAMI_POLICY_FILE", "admission")
# Users who may change reservations on Pods, separated by commas.
TRUSTED_WRITERS = frozenset(
    user.strip()
    for user in environment.text(
        "HAMI_TRUSTED_WRITERS",
        f"system:serviceaccount:{NAMESPACE}:hami-extender,"
        f"system:serviceaccount:{NAMESPACE}:hami-node-agent",
        "users; several with commas",
    ).split(",")
    if user.strip()
)

# --- web ----------------------------------------------------------------------------------------
# The extender's handler uses none of this (extender/handler.py).

WEB_LISTEN = environment.text("HAMI_WEB_LISTEN", "127.0.0.1:8000", "HOST:PORT")

MIDDLEWARE: list[str] = [
    "hami_web.metrics.requests.time_requests",
    "hami_web.access.middleware.RequestIdentity",
    "hami_web.dashboard.security.ContentSecurityPolicy",
    "django.middleware.security.SecurityMiddleware",
    "hami_web.dashboard.static_files.StaticFiles",
    "django.middleware.gzip.GZipMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "hami_web.access.middleware.Guard",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [SHIPPED_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "hami_web.dashboard.display.shown",
                "hami_web.dashboard.saved_views.kept",
            ]
        },
    }
]
ASGI_APPLICATION = "hami_web.asgi.application"
STATIC_URL = "static/"
STATICFILES_DIRS = [SHIPPED_DIR / "static"]
# The files are served as they lie in the project: there is nothing to build or to collect.
WHITENOISE_USE_FINDERS = True
WHITENOISE_ALLOW_ALL_ORIGINS = False

LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "hami_web" / "locale"]
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600

# --- worker -------------------------------------------------------------------------------------

RECONCILE_SECONDS = environment.number("HAMI_RECONCILE_SECONDS", 60, least=1, most=3600)
SAMPLE_SECONDS = environment.number("HAMI_SAMPLE_SECONDS", 60, least=1, most=3600)
HISTORY_DAYS = environment.number("HAMI_HISTORY_DAYS", 90, least=1, most=3650)
# /metrics of worker and web, "host:port"; empty: none. The extender's is on its own address.
METRICS_LISTEN = environment.text("HAMI_METRICS_LISTEN", allowed="HOST:PORT")

# Where the extender that leads tells what it decided.
EXTENDER_URL = environment.address("HAMI_EXTENDER_URL", "http://127.0.0.1:8010")
# File of the issuer of its certificate; the system's are trusted without.
EXTENDER_CA = environment.path("HAMI_EXTENDER_CA")

CELERY_BROKER_URL = environment.secret(
    "HAMI_BROKER_URL", "filesystem://", "filesystem://, redis://HOST:PORT/NUMBER"
)
BROKER_DIR = DATA_DIR / "queue"
if CELERY_BROKER_URL == "filesystem://":
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(BROKER_DIR),
        "data_folder_out": str(BROKER_DIR),
        "control_folder": str(BROKER_DIR / "control"),
    }
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = TIME_ZONE
# A task that could not run in its time is not made up for: the next one does all of it.
CELERY_BEAT_SCHEDULE = {
    name: {"task": f"hami.{name}", "schedule": seconds, "options": {"expires": seconds}}
    for name, seconds in (
        ("reconcile", RECONCILE_SECONDS),
        ("sample", SAMPLE_SECONDS),
        ("prune", 3600.0),
        ("pulse", 15.0),
        ("check", 2.0),
        ("handover", 2.0),
    )
}

# --- REST API -----------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["hami_web.access.permissions.CallerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["hami_web.access.permissions.MayDo"],
    "DEFAULT_THROTTLE_CLASSES": ["hami_web.access.permissions.CallerThrottle"],
    "DEFAULT_RENDERER_CLASSES": [
        "hami_web.api.json_answers.FastJsonRenderer",
        "hami_web.api.csv_rows.CsvRenderer",
    ],
    "DEFAULT_PARSER_CLASSES": ["hami_web.api.bodies.StrictJson"],
    "DEFAULT_SCHEMA_CLASS": "hami_web.api.schema.ApiSchema",
    "EXCEPTION_HANDLER": "hami_web.api.problems.problem_response",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "hami-web",
    "DESCRIPTION": "Nodes, GPUs, reservations and their history, as the mirror has them.",
    "VERSION": "v1",
    "OAS_VERSION": "3.1.0",
    "SERVERS": [{"url": BASE_PATH}] if BASE_PATH else [],
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_NAME_OVERRIDES": {
        "DecisionOutcomeEnum": "hami_web.history.models.Outcome",
        "AuditOutcomeEnum": "hami_web.access.models.Outcome",
        "AlertStateEnum": "hami_web.history.models.AlertState",
        "RunStateEnum": "hami_web.migration.models.RunState",
        "HandoverEventEnum": "hami_web.handover.models.EventKind",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "hami_web.api.openapi.document",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
