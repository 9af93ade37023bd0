"""Django settings, read from the environment; the only place that reads it.

Every variable has a default that works, or the process says which one it lacks. A secret can be
given as a file by the same name with ``_FILE``.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

import yaml
from django.core.exceptions import ImproperlyConfigured

from hami_web.database import parse_database_url

BASE_DIR: Final = Path(__file__).resolve().parent.parent


def _text(name: str, default: str = "") -> str:
    return os.environ.get(name, default).strip()


def _secret(name: str) -> str:
    """A secret from the variable, or from the file that ``<name>_FILE`` names."""
    path = _text(f"{name}_FILE")
    if not path:
        return _text(name)
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name}_FILE: {path!r}: {error.strerror}") from error


def _number(name: str, default: float, *, least: float, most: float) -> float:
    text = _text(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise ImproperlyConfigured(
            f"{name}: {text!r} is not allowed; allowed: a number in {least:g}…{most:g}"
        )
    return value


def _flag(name: str, default: str = "false") -> bool:
    text = _text(name, default).lower()
    if text not in {"true", "false", "1", "0"}:
        raise ImproperlyConfigured(f"{name}: {text!r} is not allowed; allowed: true, false")
    return text in {"true", "1"}


def _choice(name: str, allowed: tuple[str, ...]) -> str:
    """One of the allowed words, in any case; the first is the default."""
    text = _text(name, allowed[0]).upper()
    if text not in allowed:
        raise ImproperlyConfigured(
            f"{name}: {text!r} is not allowed; allowed: {', '.join(allowed)}"
        )
    return text


def _path(name: str) -> Path | None:
    text = _text(name)
    return Path(text) if text else None


def _database(name: str) -> dict[str, object]:
    """The database of a URL, which may be a secret; by default a file in the data folder."""
    url = _secret(name) or f"sqlite:///{DATA_DIR / 'hami.sqlite3'}"
    try:
        return parse_database_url(url)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}") from error


def _policy_section(name: str, section: str) -> object:
    """One section of the YAML file that the variable names; an empty one without a file."""
    path = _path(name)
    if path is None:
        return {}
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ImproperlyConfigured(f"{name}: {path}: {error}") from error
    if not isinstance(document, dict):
        raise ImproperlyConfigured(f"{name}: {path}: allowed: a YAML mapping")
    return document.get(section) or {}


# Where the database and the queue lie unless they are elsewhere by URL; a local disk, never NFS.
DATA_DIR = Path(_text("HAMI_DATA_DIR", str(BASE_DIR / "var"))).absolute()

# --- Django -------------------------------------------------------------------------------------

DEBUG = _flag("HAMI_DEBUG")
# Nothing that outlives a process is signed by the extender; a role that needs a lasting key checks
# for it (checks.py).
SECRET_KEY_IS_LASTING = bool(_secret("HAMI_SECRET_KEY"))
SECRET_KEY = _secret("HAMI_SECRET_KEY") or secrets.token_urlsafe(48)
ALLOWED_HOSTS = [
    host for host in _text("HAMI_ALLOWED_HOSTS", "127.0.0.1,localhost").split(",") if host
]
# The extender knows no database and loads nothing of the roles that have one; manage.py says so.
ROLES = ("ALL", "EXTENDER")
ROLE = _choice("HAMI_ROLE", ROLES)
INSTALLED_APPS: list[str] = [
    "hami_web.extender",
    "hami_web.dashboard",
    "hami_web.simulator",
    "django.contrib.staticfiles",
]
if ROLE == "ALL":
    INSTALLED_APPS += [
        "hami_web.inventory",
        "hami_web.reservations",
        "hami_web.history",
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
        "line": {"format": "%(asctime)s %(levelname)s %(name)s %(threadName)s: %(message)s"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": _choice("HAMI_LOG_LEVEL", LOG_LEVELS)},
}

# --- Kubernetes ---------------------------------------------------------------------------------

# Empty: the Pod's ServiceAccount.
KUBECONFIG = _path("HAMI_KUBECONFIG")
SCHEDULER_NAME = _text("HAMI_SCHEDULER_NAME", "hami-scheduler")
# Where the Leases of extender and agents are.
NAMESPACE = _text("HAMI_NAMESPACE", "hami-system")
# Our own Pod, from the downward API; its label tells a Service who leads.
POD_NAME = _text("HAMI_POD_NAME")
# Off only where no second extender can exist.
LEADER_ELECTION = _flag("HAMI_LEADER_ELECTION", "true")
# A leader that is silent for so long is followed by another replica.
LEASE_SECONDS = int(_number("HAMI_LEASE_SECONDS", 10, least=3, most=120))
# Calls to the API server in a second, and at once; binds go before everything else.
KUBE_QPS = _number("HAMI_KUBE_QPS", 200, least=1, most=10_000)
KUBE_BURST = int(_number("HAMI_KUBE_BURST", 400, least=2, most=20_000))

# --- extender -----------------------------------------------------------------------------------

EXTENDER_LISTEN = _text("HAMI_EXTENDER_LISTEN", "127.0.0.1:8010")
EXTENDER_THREADS = int(_number("HAMI_EXTENDER_THREADS", 128, least=4, most=1024))
EXTENDER_TLS_CERT = _path("HAMI_EXTENDER_TLS_CERT")
EXTENDER_TLS_KEY = _path("HAMI_EXTENDER_TLS_KEY")
# Longest time that /bind waits for the node; below kube-scheduler's httpTimeout (30 s).
BIND_WAIT_S = _number("HAMI_BIND_WAIT_S", 20, least=0, most=300)
# HAMi's series under their older names, beside the new ones.
LEGACY_METRICS = _flag("HAMI_LEGACY_METRICS")
# Keys that sign reservations, one a line; read again when it changes. Empty: unsigned.
SIGNING_KEYS = _path("HAMI_SIGNING_KEYS")
# Section "scheduling" of the cluster's policy file; checked where it is used.
SCHEDULING_POLICY = _policy_section("HAMI_POLICY_FILE", "scheduling")
# Section "admission" of the same file.
ADMISSION_POLICY = _policy_section("HAMI_POLICY_FILE", "admission")
# Users who may change reservations on Pods, separated by commas.
TRUSTED_WRITERS = frozenset(
    user.strip()
    for user in _text(
        "HAMI_TRUSTED_WRITERS",
        f"system:serviceaccount:{NAMESPACE}:hami-extender,"
        f"system:serviceaccount:{NAMESPACE}:hami-node-agent",
    ).split(",")
    if user.strip()
)

# --- web ----------------------------------------------------------------------------------------
# The extender's handler uses none of this (extender/handler.py).

WEB_LISTEN = _text("HAMI_WEB_LISTEN", "127.0.0.1:8000")
# Set where people reach the dashboard over HTTPS: cookies are then sent over nothing else.
WEB_HTTPS = _flag("HAMI_WEB_HTTPS")

MIDDLEWARE: list[str] = [
    "hami_web.metrics.requests.time_requests",
    "hami_web.dashboard.security.ContentSecurityPolicy",
    "django.middleware.security.SecurityMiddleware",
    "hami_web.dashboard.static_files.StaticFiles",
    "django.middleware.gzip.GZipMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
    }
]
ASGI_APPLICATION = "hami_web.asgi.application"
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# The files are served as they lie in the project: there is nothing to build or to collect.
WHITENOISE_USE_FINDERS = True
WHITENOISE_ALLOW_ALL_ORIGINS = False

LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "hami_web" / "locale"]
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_SECURE = CSRF_COOKIE_SECURE = WEB_HTTPS

# --- worker -------------------------------------------------------------------------------------

RECONCILE_SECONDS = _number("HAMI_RECONCILE_SECONDS", 60, least=1, most=3600)
SAMPLE_SECONDS = _number("HAMI_SAMPLE_SECONDS", 60, least=1, most=3600)
HISTORY_DAYS = _number("HAMI_HISTORY_DAYS", 90, least=1, most=3650)
# /metrics of worker and web, "host:port"; empty: none. The extender's is on its own address.
METRICS_LISTEN = _text("HAMI_METRICS_LISTEN")

CELERY_BROKER_URL = _secret("HAMI_BROKER_URL") or "filesystem://"
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
    )
}

# --- REST API -----------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["hami_web.api.tokens.BearerToken"],
    "DEFAULT_PERMISSION_CLASSES": ["hami_web.api.tokens.HasToken"],
    "DEFAULT_RENDERER_CLASSES": [
        "rest_framework.renderers.JSONRenderer",
        "hami_web.api.csv_rows.CsvRenderer",
    ],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "hami_web.api.schema.ApiSchema",
    "EXCEPTION_HANDLER": "hami_web.api.problems.problem_response",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "hami-web",
    "DESCRIPTION": "Nodes, GPUs, reservations and their history, as the mirror has them.",
    "VERSION": "v1",
    "OAS_VERSION": "3.1.0",
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
