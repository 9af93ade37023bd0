"""Settings of the tests."""

from hami_web.settings import *  # noqa: F403
