"""Settings of the tests; HAMI_TEST_DATABASE_URL moves them to another database."""

import os

from hami_web.database import parse_database_url
from hami_web.settings import *  # noqa: F403

# Fast, for tests only; and tests call more often than any person.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
API_CALLS_PER_MINUTE = 1_000_000.0
DATABASES = {
    "default": parse_database_url(os.environ.get("HAMI_TEST_DATABASE_URL", "sqlite:///:memory:"))
}
