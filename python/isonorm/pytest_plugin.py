"""pytest: the fixture `assert_equivalent`, which is isonorm.assert_equivalent."""

import pytest


@pytest.fixture
def assert_equivalent():
    from isonorm import assert_equivalent

    return assert_equivalent
