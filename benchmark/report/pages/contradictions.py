"""Where a verdict contradicts its paper: tests and curves that speak for the implementation, as a
wrong one is likelier than a wrong paper."""

from collections.abc import Collection, Mapping

from benchmark.analysis.claim_ledger import FAILED
from benchmark.analysis.claims import Verdict
from benchmark.papers.own_claims import OWN

TESTS = "../../tests"  # from a season's page


def evidence(
    verdict: Verdict, dataset: str, method_of: Mapping[str, str], adaptive: Collection[str]
) -> str:
    """Markdown with links to the tests of the compared methods and to their training curves; empty
    for a verdict that agrees with its paper or decides nothing, for own methods and own claims.

    method_of  the methods of this repository by preset
    adaptive   presets that weigh scores for each query: the weights are checked and shown as well
    """
    methods = dict.fromkeys(
        method_of[preset] for preset in verdict.claim.presets if preset in method_of
    )
    if verdict.conclusion not in FAILED or verdict.paper == OWN or not methods:
        return ""
    loops = ", ".join(f"[{method}]({TESTS}/test_{method}.py)" for method in methods)
    fusion = ""
    if not set(adaptive).isdisjoint(verdict.claim.presets):
        fusion = (
            f"[the fusion]({TESTS}/test_fusion.py) against weights by hand; "
            "[what the weights follow](papers/cyclematch.md); "
        )
    return (
        f"against the paper; what speaks for the implementation: {loops} against loops from the "
        f"equations; {fusion}every row that trains [memorises eight pairs]({TESTS}/test_methods.py)"
        f"; [training curves](datasets/{dataset}.md)"
    )
