"""The part of the settings that is about people: docs/security.md says what they are for."""

from __future__ import annotations

import re

from hami_web import environment

# Set where people reach the dashboard over HTTPS: cookies are then sent over nothing else.
WEB_HTTPS = environment.flag("HAMI_WEB_HTTPS")
# Below which path of a host the dashboard is reached, where a proxy shares the host with others.
BASE_PATH = environment.sub_path("HAMI_BASE_PATH")
FORCE_SCRIPT_NAME = BASE_PATH or None
LANGUAGE_COOKIE_PATH = CSRF_COOKIE_PATH = SESSION_COOKIE_PATH = BASE_PATH or "/"
LANGUAGE_COOKIE_SECURE = CSRF_COOKIE_SECURE = SESSION_COOKIE_SECURE = WEB_HTTPS
# What nobody in particular may do; none: everyone signs in.
ANONYMOUS_ROLE = environment.choice("HAMI_ANONYMOUS_ROLE", ("none", "viewer"))
ANONYMOUS_NAMESPACES = environment.words("HAMI_ANONYMOUS_NAMESPACES")
LOCAL_LOGIN = environment.flag("HAMI_LOCAL_LOGIN", "true")
KUBERNETES_LOGIN = environment.flag("HAMI_KUBERNETES_LOGIN")
# How long an answer of the API server about people is believed.
ACCESS_CACHE_SECONDS = environment.number("HAMI_ACCESS_CACHE_SECONDS", 60, least=1, most=600)
# Section "access" of the policy file: roles of groups, namespaces of roles.
ACCESS_POLICY = environment.policy_section("HAMI_POLICY_FILE", "access")
# Proxies whose X-Forwarded-For, X-Forwarded-Proto and headers about people are believed.
PROXY_ADDRESSES = environment.networks("HAMI_PROXY_ADDRESSES")
PROXY_USER_HEADER = environment.text("HAMI_PROXY_USER_HEADER")
PROXY_GROUPS_HEADER = environment.text("HAMI_PROXY_GROUPS_HEADER")
# People of these sources have the same names in the cluster, whose rules say what they see.
REVIEWED_SOURCES = environment.words("HAMI_REVIEWED_SOURCES", ("oidc", "proxy"))
KUBERNETES_NAME_PREFIX = environment.text("HAMI_KUBERNETES_NAME_PREFIX")
API_CALLS_PER_MINUTE = environment.number("HAMI_API_CALLS_PER_MINUTE", 1200, least=1, most=10**6)
# 0: audit entries are kept for ever.
AUDIT_DAYS = environment.number("HAMI_AUDIT_DAYS", 0, least=0, most=36_500)
# For manage.py create_admin, where nobody can type.
ADMIN_PASSWORD = environment.secret("HAMI_ADMIN_PASSWORD")

# The provider's own description of itself is read below this address; empty: no OIDC.
OIDC_ISSUER = environment.text("HAMI_OIDC_ISSUER").rstrip("/")
OIDC_NAME_CLAIM = environment.text("HAMI_OIDC_NAME_CLAIM", "preferred_username")
OIDC_GROUPS_CLAIM = environment.text("HAMI_OIDC_GROUPS_CLAIM", "groups")
# Names of the library (access/oidc.py).
OIDC_RP_CLIENT_ID = environment.text("HAMI_OIDC_CLIENT_ID")
OIDC_RP_CLIENT_SECRET = environment.secret("HAMI_OIDC_CLIENT_SECRET")
OIDC_RP_SCOPES = environment.text("HAMI_OIDC_SCOPES", "openid profile groups")
OIDC_RP_SIGN_ALGO = environment.choice("HAMI_OIDC_ALGORITHM", ("RS256", "ES256"))
OIDC_USE_PKCE = True
OIDC_TIMEOUT = 10
OIDC_AUTHENTICATION_CALLBACK_URL = "access:oidc-callback"

AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
if OIDC_ISSUER:
    AUTHENTICATION_BACKENDS.append("hami_web.access.oidc.OidcBackend")
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}", "OPTIONS": options}
    for name, options in (
        ("MinimumLengthValidator", {"min_length": 12}),
        ("UserAttributeSimilarityValidator", {"user_attributes": ("username",)}),
        ("CommonPasswordValidator", {}),
        ("NumericPasswordValidator", {}),
    )
]
LOGIN_URL = "access:login"
LOGIN_REDIRECT_URL = "dashboard:page"
# Names of our own: on one host all ports share their cookies. Browsers take __Host- for / only.
_COOKIE_PREFIX = f"{'__Secure' if BASE_PATH else '__Host'}-hami" if WEB_HTTPS else "hami"
SESSION_COOKIE_NAME = f"{_COOKIE_PREFIX}_session"
CSRF_COOKIE_NAME = f"{_COOKIE_PREFIX}_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "hami_web.access.refusals.refuse_forged"
SESSION_COOKIE_AGE = int(environment.number("HAMI_SESSION_HOURS", 12, least=0.1, most=720) * 3600)
# Set by RequestIdentity from what an allowed proxy says; no header can have this name.
SECURE_PROXY_SSL_HEADER = ("hami.scheme", "https")
SECURE_SSL_REDIRECT = WEB_HTTPS
SECURE_REDIRECT_EXEMPT = [
    f"^{re.escape(f'{BASE_PATH}/{name}'.lstrip('/'))}$" for name in ("healthz", "readyz")
]
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if WEB_HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# Other hosts of the domain are not ours to decide for.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
