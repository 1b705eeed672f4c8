"""Claims that a season file makes itself, as if a paper made them. Knows no torch."""

from benchmark.papers.printed_tables import About, Claim, Paper
from benchmark.protocol import METRICS
from benchmark.season.parameters import OwnClaim, Params

OWN = "season"  # where papers have the names of their files


def own_claims(params: Params) -> dict[str, Paper]:
    """The season as a paper with claims and no table; empty where it makes none."""
    if not params.claims:
        return {}
    about = About(title=params.title, authors="", year=0, venue="", source="season.yaml")
    claims = [_claim(number, claim) for number, claim in enumerate(params.claims, 1)]
    return {OWN: Paper(paper=about, tables={}, claims=claims)}


def _claim(number: int, claim: OwnClaim) -> Claim:
    said = f"{claim.better} is better than {claim.than} in {METRICS[claim.metric].heading}."
    return Claim(
        id=f"own_{number}",
        statement=claim.statement or said,
        where="season.yaml",
        presets=[claim.better, claim.than],
        metric=claim.metric,
    )
