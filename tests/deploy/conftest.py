"""Tests of the chart are skipped, with the reason, where helm is missing."""

from __future__ import annotations

import pytest

from tests.deploy.chart import program


@pytest.fixture(scope="session")
def helm() -> str:
    found = program("helm")
    if found is None:
        pytest.skip("needs helm: .ci/helm puts it into the environment")
    return found


@pytest.fixture(scope="session")
def kubectl() -> str:
    found = program("kubectl")
    if found is None:
        pytest.skip("needs kubectl: .ci/helm puts it into the environment")
    return found
