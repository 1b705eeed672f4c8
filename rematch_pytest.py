"""A plugin of pytest: `pytest --claims claims.yaml` runs each claim of the file as a
test, which passes if it holds, fails if it does not, and is skipped if it is undecided.

pytest loads it in every run, so it is no part of the package, which loads numpy: that
is imported with the first claim.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rematch.answers import PrintedVerdict, Verdict


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("rematch").addoption(
        "--claims",
        action="append",
        default=[],
        metavar="FILE",
        help="run the claims of a .yaml file as tests (rematch-benchmark)",
    )


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the claims to the tests that were collected."""
    for name in config.getoption("claims"):
        path = Path(config.invocation_params.dir, name)
        items += ClaimsFile.from_parent(session, path=path).collect()


class ClaimsFile(pytest.File):
    """A file of claims; they are judged together."""

    def collect(self) -> Iterator["ClaimTest"]:
        import rematch
        from benchmark.core.errors import printable

        try:
            verdicts = rematch.judge_claims(self.path)
        except rematch.UserError as error:
            raise pytest.UsageError(f"--claims: {error}") from error
        names: dict[str, int] = {}
        for verdict in verdicts:
            name = verdict.statement or verdict.summary().partition(": ")[0]
            name = printable(name)  # pytest shows it as it is
            names[name] = names.get(name, 0) + 1
            if names[name] > 1:
                name = f"{name} ({names[name]})"
            yield ClaimTest.from_parent(self, name=name, verdict=verdict)


class ClaimTest(pytest.Item):
    def __init__(self, *, verdict: "Verdict | PrintedVerdict", **given: object) -> None:
        super().__init__(**given)
        self.verdict = verdict

    def runtest(self) -> None:
        from benchmark.commands.verdict_facts import HOLDS, UNDECIDED

        if self.verdict.status == UNDECIDED:
            pytest.skip(self.verdict.summary())
        if self.verdict.status != HOLDS:
            raise ClaimDoesNotHoldError(self.verdict.summary())

    def repr_failure(self, excinfo: pytest.ExceptionInfo, style: object = None) -> str:
        if excinfo.errisinstance(ClaimDoesNotHoldError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"claim: {self.name}"


class ClaimDoesNotHoldError(AssertionError):
    """With what was measured."""
