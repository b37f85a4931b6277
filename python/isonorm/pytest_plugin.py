"""pytest: the fixture `assert_equivalent`, which is isonorm.assert_equivalent; and the text of a comparison whose assert failed."""

import sys

import pytest


@pytest.fixture
def assert_equivalent():
    from isonorm import assert_equivalent

    return assert_equivalent


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """pytest cuts the values in a failed assert, and puts them on one line: the whole text follows."""
    report = (yield).get_result()
    isonorm = sys.modules.get("isonorm")
    denied = isonorm.Result.denied if isonorm else None
    if denied is not None and call.excinfo is not None and f"assert {denied}"[:60] in str(call.excinfo.value):
        report.sections.append(("isonorm.compare", str(denied)))
