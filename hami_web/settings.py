"""Django settings, read from the environment."""

SECRET_KEY = "placeholder-for-type-checking"
INSTALLED_APPS: list[str] = []
