"""The page on layers of relevance: what changes when more counts as right. Knows no torch."""

from collections.abc import Sequence
from statistics import fmean

import numpy as np

from benchmark.boards.boards import Board
from benchmark.boards.truths import Truth
from benchmark.report.pages.claim_tables import statement
from benchmark.report.pages.templates import filled
from benchmark.report.tables import Number, Table, mean, signed
from benchmark.scoring.metrics import METRICS, SUMMED_K

SAME = "same"


def relevance_page(board: Board, truths: Sequence[Truth]) -> str:
    """The page of a dataset with such layers as Markdown."""
    shown = []
    for way in board.ways:
        if of_way := [truth for truth in truths if way in truth.ways]:
            facts = {"way": way, "truths": of_way, "rises": rises(of_way, way)}
            tables = {"layers": layers(of_way, way), "order": order(of_way, way)}
            recalls = [recall(of_way, way, k) for k in SUMMED_K]
            shown.append(facts | tables | {"recalls": recalls, "cuts": cuts(of_way, way)})
    is_partial = any(truth.is_partial for truth in truths)
    facts = {"verdicts": verdicts(truths), "is_partial": is_partial}
    return filled("relevance.md.j2", board=board, truths=truths, shown=shown, **facts)


def rises(of: Sequence[Truth], way: str) -> dict[str, list[float]]:
    """By how much the R@1 of each row rises, the least first, by layer."""
    metric = f"{way}_r1"
    return {
        t.name: sorted(row.mean(metric) - t.own.row(row.preset).mean(metric) for row in t.here.rows)
        for t in of
    }


def layers(of: Sequence[Truth], way: str) -> Table:
    """What the layers are: rule, queries, pairs, and how many first answers were judged."""
    lines = []
    for truth in of:
        facts = truth.facts(way)
        counts = {"layer": truth.name, "right": truth.rule, "queries": facts["queries"]}
        counts["right pairs"] = facts["right"]
        judged = Number(value=facts["first answers judged"] if truth.is_partial else None)
        lines.append(counts | {"judged pairs": facts["judged"], "first answers judged (%)": judged})
    return Table.of("Layers", lines)


def recall(of: Sequence[Truth], way: str, k: int) -> Table:
    """R@K of every row by each layer with its bounds, and by `own` on its queries, once where they
    are the same; the best by `own` first."""
    metric, first = f"{way}_r{k}", of[0]
    rows = sorted(first.here.rows, key=lambda row: -first.own.row(row.preset).mean(metric))
    columns: dict[str, list] = {"preset": [row.title for row in rows]}
    asked: list[np.ndarray] = []
    for truth in of:
        own, here = ([each.row(row.preset) for row in rows] for each in (truth.own, truth.here))
        queries = truth.board.layers[truth.name][way].queries
        if not any(np.array_equal(queries, other) for other in asked):
            name = f"own, queries of {truth.name}" if asked else "own"
            columns[name] = [mean(row.values(metric), 1) for row in own]
            asked.append(queries)
        columns[truth.name] = [mean(row.values(metric), 1) for row in here]
        if truth.is_partial:
            ends = [truth.bounds(row, way, k) for row in here]
            left = ["" if of.left_out is None else f"{of.left_out:.1f}, " for of in ends]
            columns[truth.name] = [
                Number(value=of.wrong, note=f"({part}{of.right:.1f})")
                for of, part in zip(ends, left, strict=True)
            ]
    return Table.of(METRICS[metric].heading, columns, [row.preset for row in rows])


def order(of: Sequence[Truth], way: str) -> Table:
    """The pairs of rows in another order, those that differ most by the layer first."""
    lines = []
    for truth in of:
        for change in truth.changes(way):
            pair = {"ahead by own": change.first.title, "ahead by the layer": change.second.title}
            steps = {"own": signed(change.own, 1), "difference by it": signed(-change.layer, 1)}
            lines.append({"layer": truth.name} | pair | steps)
    return Table.of("Another order", lines)


def cuts(of: Sequence[Truth], way: str) -> Table:
    """What other least scores of a right pair change: R@1, mean over rows, and their order."""
    lines = []
    for truth in of:
        for cut, pairs, board in truth.other_cuts(way):
            values = [row.mean(f"{way}_r1") for row in board.rows]
            line = {"layer": truth.name, "least score": Number(value=cut, form=".2g")}
            line |= {"right pairs": pairs, f"{way} R@1, mean of rows": Number(value=fmean(values))}
            lines.append(line)
    return Table.of("Other cuts", lines)


def verdicts(of: Sequence[Truth]) -> Table:
    """The claims that the layers tell, with the verdict by `own` on the queries of the layer, and
    by it where that is another one; those that change first."""
    lines: dict[tuple[str, str], dict] = {}
    for truth in of:
        for own, here, steps in truth.judged_claims:
            line = lines.setdefault((own.paper, own.claim.id), {"claim": statement(own)})
            line.setdefault("own", own.conclusion)
            line[truth.name] = SAME
            if own.conclusion != here.conclusion:
                moved = ", ".join(f"[{low:+.1f}, {high:+.1f}]" for low, high in steps)
                line[truth.name] = f"{here.conclusion}; own {own.conclusion}; adds {moved}"
    names = [truth.name for truth in of]
    ordered = sorted(lines.values(), key=lambda line: all(line.get(n) == SAME for n in names))
    return Table.of("Verdicts", ordered)
