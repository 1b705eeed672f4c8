"""The page on layers of relevance: what changes when more counts as right. Knows no
torch."""

from collections.abc import Iterator, Sequence
from statistics import fmean

import numpy as np

from benchmark.boards.board_layers import BoardLayer, board_layers
from benchmark.boards.boards import Board, Row
from benchmark.report.pages import Page, SeasonInputs, filled
from benchmark.report.pages.claim_tables import statement
from benchmark.report.tables import Number, Table, mean, signed
from benchmark.scoring.metrics import METRICS, SUMMED_K

SAME = "same"


def pages(inputs: SeasonInputs) -> Iterator[Page]:
    """A page for each dataset with such layers."""
    for board in inputs.boards:
        layers = board_layers(board)
        if layers:
            yield Page(
                path=f"datasets/{board.dataset}-relevance.md",
                text=relevance_page(board, layers),
                title=board.title,
                about="other relevance labels, where more is right than own captions",
            )


def relevance_page(board: Board, layers: Sequence[BoardLayer]) -> str:
    """The page of a dataset with such layers as Markdown."""
    shown = []
    for way in board.ways:
        of_way = [layer for layer in layers if way in layer.pairs]
        if of_way:
            section = {
                "way": way,
                "layers": of_way,
                "rises": {layer.name: _rises(layer, way) for layer in of_way},
                "recalls": [recall(of_way, way, k) for k in SUMMED_K],
                "pairs": pairs(of_way, way),
                "order": order(of_way, way),
                "cuts": cuts(of_way, way),
            }
            shown.append(section)
    return filled(
        "relevance.md.j2",
        board=board,
        layers=layers,
        shown=shown,
        verdicts=verdicts(layers),
        is_partial=any(layer.card["partial"] for layer in layers),
    )


def _rises(layer: BoardLayer, way: str) -> list[float]:
    """How much higher R@1 of each row is by the layer, rising."""
    return sorted(of_row.here - of_row.own for of_row in layer.recalls(way))


def pairs(layers: Sequence[BoardLayer], way: str) -> Table:
    """What the layers are: rule, queries, pairs, and how many first answers were
    judged."""
    lines = []
    for layer in layers:
        pairs = layer.pairs[way]
        share = layer.share_judged(way) if layer.card["partial"] else None
        line = {
            "layer": layer.name,
            "right": layer.card["rule"],
            "queries": len(pairs.queries),
            "right pairs": len(pairs.right),
            "judged pairs": pairs.said.nnz,
            "first answers judged (%)": Number(value=share),
        }
        lines.append(line)
    return Table.of("Layers", lines)


def recall(layers: Sequence[BoardLayer], way: str, k: int) -> Table:
    """R@K of every row by each layer with its bounds, and by `own` on its queries, once
    where they are the same; the best by `own` first."""
    metric = f"{way}_r{k}"
    first = layers[0]
    presets = [row.preset for row in first.here.rows]
    presets.sort(key=lambda preset: -first.own.row(preset).mean(metric))
    titles = [first.here.row(preset).title for preset in presets]
    columns: dict[str, list] = {"preset": titles}
    shown: list[np.ndarray] = []  # sets of queries
    for layer in layers:
        queries = layer.pairs[way].queries
        if not any(np.array_equal(queries, other) for other in shown):
            name = f"own, queries of {layer.name}" if shown else "own"
            columns[name] = _means(layer.own, presets, metric)
            shown.append(queries)
        columns[layer.name] = _means(layer.here, presets, metric)
        if layer.card["partial"]:
            rows = map(layer.here.row, presets)
            columns[layer.name] = [_bounded(layer, row, way, k) for row in rows]
    return Table.of(METRICS[metric].heading, columns, presets)


def _means(board: Board, presets: Sequence[str], metric: str) -> list[Number | None]:
    return [mean(board.row(preset).values(metric), 1) for preset in presets]


def _bounded(layer: BoardLayer, row: Row, way: str, k: int) -> Number:
    """R@K with unjudged answers counted as wrong; then left out, if known, and counted
    as right."""
    bounds = layer.bounds(row, way, k)
    note = f"({bounds.right:.1f})"
    if bounds.left_out is not None:
        note = f"({bounds.left_out:.1f}, {bounds.right:.1f})"
    return Number(value=bounds.wrong, note=note)


def order(layers: Sequence[BoardLayer], way: str) -> Table:
    """The pairs of rows in another order, those that differ most by the layer first."""
    lines = []
    for layer in layers:
        for change in layer.changes(way):
            line = {
                "layer": layer.name,
                "ahead by own": change.first.title,
                "ahead by the layer": change.second.title,
                "own": signed(change.own, 1),
                "difference by it": signed(-change.here, 1),
            }
            lines.append(line)
    return Table.of("Another order", lines)


def cuts(layers: Sequence[BoardLayer], way: str) -> Table:
    """What other least scores of a right pair change: R@1, mean over rows, and their
    order."""
    lines = []
    for layer in layers:
        for cut in layer.other_cuts(way):
            level = fmean(row.mean(f"{way}_r1") for row in cut.board.rows)
            line = {
                "layer": layer.name,
                "least score": Number(value=cut.least, form=".2g"),
                "right pairs": cut.right_pairs,
                f"{way} R@1, mean of rows": Number(value=level),
            }
            lines.append(line)
    return Table.of("Other cuts", lines)


def verdicts(layers: Sequence[BoardLayer]) -> Table:
    """The claims that the layers tell, with the verdict by `own` on the queries of the
    layer, and by it where that is another one; those that change first."""
    lines: dict[tuple[str, str], dict] = {}
    for layer in layers:
        for claim, judged in layer.judged_claims.items():
            own = judged.own.conclusion
            by_layer = judged.here.conclusion
            new = {"claim": statement(judged.own), "own": own}
            line = lines.setdefault(claim, new)
            line[layer.name] = SAME
            if own != by_layer:
                moves = []
                for low, high in judged.steps:
                    moves.append(f"[{signed(low, 1)}, {signed(high, 1)}]")
                added = f"adds {', '.join(moves)}"
                line[layer.name] = f"{by_layer}; own {own}; {added}"
    names = [layer.name for layer in layers]

    def is_same(line: dict) -> bool:
        return all(line.get(name) == SAME for name in names)

    return Table.of("Verdicts", sorted(lines.values(), key=is_same))
