"""Settings of the tests; HAMI_TEST_DATABASE_URL moves them to another database."""

import os

from hami_web.database import parse_database_url
from hami_web.settings import *  # noqa: F403

DATABASES = {
    "default": parse_database_url(os.environ.get("HAMI_TEST_DATABASE_URL", "sqlite:///:memory:"))
}
