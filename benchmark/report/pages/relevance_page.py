"""The page on layers of relevance: what changes when more counts as right. Knows no
torch."""

from collections.abc import Sequence
from statistics import fmean

import numpy as np

from benchmark.boards.board_layers import BoardLayer
from benchmark.boards.boards import Board
from benchmark.report.pages import filled
from benchmark.report.pages.claim_tables import statement
from benchmark.report.tables import Number, Table, mean, signed
from benchmark.scoring.metrics import METRICS, SUMMED_K

SAME = "same"


def relevance_page(board: Board, layers: Sequence[BoardLayer]) -> str:
    """The page of a dataset with such layers as Markdown."""
    shown = []
    for way in board.ways:
        if of := [layer for layer in layers if way in layer.pairs]:
            tables = {
                "pairs": pairs(of, way),
                "order": order(of, way),
                "cuts": cuts(of, way),
            }
            recalls = [recall(of, way, k) for k in SUMMED_K]
            # Of R@1 of each row.
            rises = {
                x.name: sorted(here - own for _, own, here in x.recalls(way))
                for x in of
            }
            shown.append(
                {"way": way, "layers": of, "rises": rises, "recalls": recalls} | tables
            )
    facts = {
        "verdicts": verdicts(layers),
        "is_partial": any(of.card["partial"] for of in layers),
    }
    return filled("relevance.md.j2", board=board, layers=layers, shown=shown, **facts)


def pairs(of: Sequence[BoardLayer], way: str) -> Table:
    """What the layers are: rule, queries, pairs, and how many first answers were
    judged."""
    lines = []
    for layer in of:
        pairs, is_partial = layer.pairs[way], layer.card["partial"]
        line = {
            "layer": layer.name,
            "right": layer.card["rule"],
            "queries": len(pairs.queries),
        }
        line |= {"right pairs": len(pairs.right), "judged pairs": pairs.said.nnz}
        judged = Number(value=layer.share_judged(way) if is_partial else None)
        lines.append(line | {"first answers judged (%)": judged})
    return Table.of("Layers", lines)


def recall(of: Sequence[BoardLayer], way: str, k: int) -> Table:
    """R@K of every row by each layer with its bounds, and by `own` on its queries, once
    where they are the same; the best by `own` first."""
    metric, first = f"{way}_r{k}", of[0]
    rows = sorted(
        first.here.rows, key=lambda row: -first.own.row(row.preset).mean(metric)
    )
    columns: dict[str, list] = {"preset": [row.title for row in rows]}
    asked: list[np.ndarray] = []
    for layer in of:
        own, here = (
            [each.row(row.preset) for row in rows] for each in (layer.own, layer.here)
        )
        queries = layer.pairs[way].queries
        if not any(np.array_equal(queries, other) for other in asked):
            name = f"own, queries of {layer.name}" if asked else "own"
            columns[name] = [mean(row.values(metric), 1) for row in own]
            asked.append(queries)
        columns[layer.name] = [mean(row.values(metric), 1) for row in here]
        if layer.card["partial"]:
            columns[layer.name] = []
            for wrong, *others in (layer.bounds(row, way, k) for row in here):
                note = ", ".join(f"{end:.1f}" for end in others if end is not None)
                columns[layer.name].append(Number(value=wrong, note=f"({note})"))
    return Table.of(METRICS[metric].heading, columns, [row.preset for row in rows])


def order(of: Sequence[BoardLayer], way: str) -> Table:
    """The pairs of rows in another order, those that differ most by the layer first."""
    lines = []
    for layer in of:
        for first, second, own, here in layer.changes(way):
            pair = {"ahead by own": first.title, "ahead by the layer": second.title}
            steps = {"own": signed(own, 1), "difference by it": signed(-here, 1)}
            lines.append({"layer": layer.name} | pair | steps)
    return Table.of("Another order", lines)


def cuts(of: Sequence[BoardLayer], way: str) -> Table:
    """What other least scores of a right pair change: R@1, mean over rows, and their
    order."""
    lines = []
    for layer in of:
        for cut, right, board in layer.other_cuts(way):
            values = [row.mean(f"{way}_r1") for row in board.rows]
            line = {"layer": layer.name, "least score": Number(value=cut, form=".2g")}
            line |= {
                "right pairs": right,
                f"{way} R@1, mean of rows": Number(value=fmean(values)),
            }
            lines.append(line)
    return Table.of("Other cuts", lines)


def verdicts(of: Sequence[BoardLayer]) -> Table:
    """The claims that the layers tell, with the verdict by `own` on the queries of the
    layer, and by it where that is another one; those that change first."""
    lines: dict[tuple[str, str], dict] = {}
    for layer in of:
        for claim, (own, here, steps) in layer.judged_claims.items():
            line = lines.setdefault(
                claim, {"claim": statement(own), "own": own.conclusion}
            )
            line[layer.name] = SAME
            if own.conclusion != here.conclusion:
                moved = ", ".join(f"[{low:+.1f}, {high:+.1f}]" for low, high in steps)
                line[layer.name] = (
                    f"{here.conclusion}; own {own.conclusion}; adds {moved}"
                )
    names = [layer.name for layer in of]
    ordered = sorted(
        lines.values(), key=lambda line: all(line.get(n) == SAME for n in names)
    )
    return Table.of("Verdicts", ordered)
