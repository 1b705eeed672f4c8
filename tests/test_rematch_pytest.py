"""The plugin of pytest that runs claims as tests."""

import pytest
from test_written_claims import (
    three_methods as three_methods,  # a fixture
)
from test_written_claims import written

pytest_plugins = ["pytester"]


@pytest.fixture
def run_in_process(three_methods, pytester):
    def run_claims(*claims: str) -> pytest.RunResult:
        path = written(three_methods, *claims)
        options = ("-p", "rematch_pytest", "-p", "no:cacheprovider")
        return pytester.runpytest_inprocess(*options, "--claims", str(path))

    return run_claims


def test_a_claim_passes_fails_or_is_skipped(run_in_process):
    result = run_in_process(
        "better: better, than: worse, statement: one",
        "better: worse, than: better, statement: two",
        'result: better, printed: "74.0", margin: 0.1, statement: three',
    )
    result.assert_outcomes(passed=1, failed=1, skipped=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["two", "*worse beats better*reversed*"])


def test_claims_without_a_statement_have_names_of_their_own(run_in_process):
    claim = "better: better, than: worse"
    result = run_in_process(claim, claim)
    result.assert_outcomes(passed=2)


def test_a_statement_is_shown_as_one_line(run_in_process):
    statement = '"clear \\e[2J\\n\\nall"'
    result = run_in_process(f"better: worse, than: better, statement: {statement}")
    result.assert_outcomes(failed=1)
    assert r"clear \x1b[2J all" in result.stdout.str()
    assert "\x1b" not in result.stdout.str()


def test_a_file_that_is_none_ends_with_one_line(run_in_process):
    result = run_in_process("better: better")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--claims*claims.yaml*expected*"])
