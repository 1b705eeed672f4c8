"""What two papers show. Instance loss: densities of scores by loss (Fig. 5), and
correlations of images before and after training (Fig. 4b), and the loss of both
branches (Fig. 8). CycleMatch: maps of its spaces (Fig. 6.4), curves and weights of
adaptive fusion (Figs. 6.5 and 6.7), and scores of a few pairs (Fig. 6.6)."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from benchmark.boards.boards import Row
from benchmark.papers.printed_tables import papers
from benchmark.report import figure_style as style
from benchmark.report.figure_listing import FigureInputs, ReportFigure
from benchmark.report.figures.similarity import densities, limits
from benchmark.scoring.fusion import MIDDLE

LOSSES = ("dual_path_rank_1", "dual_path_instance_1", "dual_path_full_2")
INSTANCE = "dual_path_instance_1"  # the preset of Fig. 4b
# columns of a history
BRANCHES = {"image branch": "loss_visual", "text branch": "loss_textual"}
MAP = "tsne_"  # a sample of a row, before the name of the space
MAPPED = ("dualmatch", "cyclematch")
FUSIONS = ("cyclematch_adaptive", "cyclematch_hglmm_adaptive")
SCORED = ("dualmatch", "cyclematch_adaptive")
QUERY = {"i2t": "image query", "t2i": "caption query"}


def instance_loss(inputs: FigureInputs) -> Iterator[ReportFigure]:
    board = inputs.board
    known = filter(None, map(board.row, LOSSES))
    rows = [row for row in known if row.played and row.has_scores]
    if rows:
        yield _losses(board.title, rows)
    row = board.row(INSTANCE)
    if row and {"correlation_before", "correlation_after"} <= row.samples.keys():
        yield _correlations(board.title, row)
    history = row.played[0].record.epochs if row and row.played else None
    if history is not None and {*BRANCHES.values()} <= {*history}:
        yield _branches(board.title, row, history)


def _losses(title: str, rows: Sequence[Row]) -> ReportFigure:
    """Fig. 5, for each loss."""
    printed = printed_overlaps()
    titles = []
    for row in rows:
        measured = f"S {row.mean('overlap_s'):.4f}"
        matched = f"mean of P {row.mean('mean_matched'):.3f}"
        unmatched = f"of Q {row.mean('mean_unmatched'):z.3f}"
        head = style.shown(row.title, 44)
        overlap = f"{measured} (paper {printed[row.preset]:.4f})"
        titles.append(f"{head}\n{overlap}\n{matched}, {unmatched}")
    histograms = [row.played[0].scores.histograms for row in rows]
    return ReportFigure(
        name="losses",
        figure=densities(titles, histograms, [limits(histograms)] * len(rows)),
        alt=f"{title}: densities of scores by loss",
        caption="After Fig. 5, where S falls from ranking loss to instance loss to "
        "both. Drawn are the scores of the first seed; numbers are means over all.",
    )


def _correlations(title: str, row: Row) -> ReportFigure:
    """Fig. 4b."""
    before = row.samples["correlation_before"]
    after = row.samples["correlation_after"]
    matrices = {
        "before training: input features": before,
        "after: embeddings": after,
    }
    labels = ("image", "image", "Pearson correlation")
    first = off_diagonal(before)
    last = off_diagonal(after)
    return ReportFigure(
        name="correlations",
        figure=style.matrix_panels(matrices, labels, "RdBu_r", -1),
        alt=f"{title}, {row.title}: Pearson correlation of images",
        caption="After Fig. 4b, where the features of two images are less correlated "
        "after training. Here the mean |r| off the diagonal goes from "
        f"{first:.3f} to {last:.3f}: {_recurs(last < first)}. Standardised features "
        f"are hardly correlated to begin with. Seed {row.samples_seed}.",
    )


def _branches(title: str, row: Row, history: pd.DataFrame) -> ReportFigure:
    """Fig. 8."""
    losses = history.set_index("epoch")[[*BRANCHES.values()]]
    is_half = losses < losses.iloc[0] / 2
    image, text = is_half.idxmax().where(is_half.any(), np.inf)  # epochs
    return ReportFigure(
        name="branches",
        figure=branch_losses(losses),
        alt=f"{title}, {row.title}: instance loss of both branches by epoch",
        caption="After Fig. 8, where the classification error of the image CNN falls "
        "before that of the text CNN; drawn is the loss of each, as no record has its "
        f"error. It has halved in {_epoch(image)} for images and in {_epoch(text)} for "
        f"texts: {_recurs(image < text)}. Seed {row.played[0].record.seed}.",
    )


def _recurs(is_same: bool) -> str:
    """Whether what the paper shows is there, too."""
    return "it recurs" if is_same else "it does not recur"


def printed_overlaps() -> dict[str, float]:
    """S as the paper prints it, by preset."""
    claims = papers()["instance_loss"].claims
    order = next(claim for claim in claims if claim.id == "overlap_order")
    printed = {}
    for part in order.parts:
        printed |= zip(part.presets, part.printed, strict=True)
    return printed


def _epoch(number: float) -> str:
    return f"epoch {number:g}" if np.isfinite(number) else "no epoch"


def off_diagonal(values: np.ndarray) -> float:
    """Mean absolute value off the diagonal of (N, N); 0 for a single item."""
    others = values[~np.eye(len(values), dtype=bool)]
    return float(np.abs(others.astype(np.float64)).mean()) if others.size else 0.0


def branch_losses(losses: pd.DataFrame) -> Figure:
    """The columns of BRANCHES by epoch, the index."""
    with style.drawing():
        figure = Figure(figsize=(style.WIDTH, 3.0), layout="constrained")
        axes = figure.subplots()
        looks = zip(BRANCHES.items(), style.COLOURS, strict=False)
        for (branch, column), colour in looks:
            axes.plot(losses.index, losses[column], color=colour, label=branch)
        axes.set(xlabel="epoch", ylabel="instance loss", ylim=(0, None))
        axes.legend()
    return figure


def cyclematch(inputs: FigureInputs) -> Iterator[ReportFigure]:
    board = inputs.board
    rows = list(filter(None, map(board.row, MAPPED)))
    maps = {}
    distances = []
    for row in rows:
        for name, points in row.samples.items():
            if name.startswith(MAP):
                title = f"{row.title}: {name.removeprefix(MAP)} space"
                maps[title] = points.astype(np.float64)
                distances.append(f"{title} {nearness(maps[title]):.2f}")
    if maps:
        yield ReportFigure(
            name="spaces",
            figure=space_maps(maps),
            alt=f"{board.title}: t-SNE maps of images and captions, pairs joined, in "
            "each space",
            caption="After Fig. 6.4, where matched pairs lie close together. Median "
            "distance of a pair here, as a share of that of unmatched ones: "
            f"{'; '.join(distances)}. It recurs where this is far below 1. Seed "
            f"{rows[0].samples_seed}.",
        )
    known = filter(None, map(board.row, FUSIONS))
    fused = [row for row in known if "weights_i2t" in row.samples]
    if fused:
        yield from fusion(board.title, fused)
    scored = filter(None, map(board.row, SCORED))
    rows = [row for row in scored if "similarity" in row.samples]
    matrices = {}
    for row in rows:
        values = row.samples["similarity"].astype(np.float64)
        matrices[row.title] = (values - values.min()) / (np.ptp(values) or 1.0)
    if matrices:
        scale = "score, from the lowest of the panel to the highest"
        labels = ("caption", "image", scale)
        yield ReportFigure(
            name="similarity",
            figure=style.matrix_panels(matrices, labels, "cividis", 0),
            alt=f"{board.title}: scores of a few images and a caption of each",
            caption="After Fig. 6.6, where matched pairs, which are the diagonal, have "
            f"greater scores than unmatched ones. Seed {rows[0].samples_seed}.",
        )


def fusion(title: str, rows: Sequence[Row]) -> Iterator[ReportFigure]:
    """How adaptive fusion finds its weights, and the weights, of each row."""
    members = [part.partition(":")[2] or part for part in rows[0].declared.fuse.of]
    curves = {}
    histograms = {}
    sentences = []
    for row in rows:
        whose = f"{row.title}, " if len(rows) > 1 else ""
        weights = {}
        for way, query_of_way in QUERY.items():
            if f"weights_{way}" not in row.samples:
                continue
            weights[way] = row.samples[f"weights_{way}"].astype(np.float64)
            histograms[f"{whose}by {query_of_way}"] = weights[way]
            queries = row.samples[f"curve_queries_{way}"]
            scores = row.samples[f"curves_{way}"].swapaxes(0, 1)  # by query
            for query, of_query in zip(queries, scores, strict=True):
                panel = f"{whose}{query_of_way} {query}"
                curves[panel] = (of_query, weights[way][:, query])
        both = np.concatenate(list(weights.values()), axis=1)
        sentences.append(
            _of_weights(f"Of {row.title}," if whose else "Here", members, both)
        )
    titles = " and ".join(row.title for row in rows)
    yield ReportFigure(
        name="curves",
        figure=score_curves(curves, members),
        alt=f"{title}, {titles}: scores of a few queries, sorted, and the weight of "
        "each score",
        caption="After Fig. 6.5, where the score with the smallest area under its "
        f"curve has the largest weight. Seed {rows[0].samples_seed}.",
    )
    low, high = MIDDLE
    yield ReportFigure(
        name="weights",
        figure=weight_histograms(histograms, members),
        alt=f"{title}, {titles}: histograms of the adaptive weights of all queries",
        caption=f"After Fig. 6.7, where most weights lie between {low} and {high}. "
        f"{' '.join(sentences)} By Eq. 6.10 a weight says how small the positive area "
        "of a score is, not how well it ranks. Seed "
        f"{rows[0].samples_seed}.",
    )


def _of_weights(where: str, members: Sequence[str], weights: np.ndarray) -> str:
    """What is said of weights (S, Q) by S members."""
    low, high = MIDDLE
    share = float(np.mean((weights >= low) & (weights <= high)))
    spreads = []
    for member, of_member in zip(members, weights, strict=True):
        spreads.append(f"{member} {of_member.mean():.2f} ± {of_member.std():.2f}")
    return (
        f"{where} {100 * share:.0f}% do: {_recurs(share > 0.5)}. Mean and standard "
        f"deviation over the queries: {', '.join(spreads)}."
    )


def nearness(points: np.ndarray) -> float:
    """Of a map (2N, 2), images first: the median distance of matched pairs, divided by
    that of unmatched ones."""
    images, captions = np.split(points.astype(np.float64), 2)
    distances = np.linalg.norm(images[:, None] - captions, axis=2)
    is_matched = np.eye(len(images), dtype=bool)
    matched = np.median(distances[is_matched])
    unmatched = np.median(distances[~is_matched])
    return float(matched / unmatched)


def space_maps(maps: Mapping[str, np.ndarray]) -> Figure:
    """Maps (2N, 2) of N images and a caption of each, every pair joined: the shorter
    the lines, the better a space brings pairs together."""
    with style.drawing():
        figure, grid = style.panels(len(maps), columns=3, head=0.2, row=3.3)
        for axes, (title, points) in zip(grid, maps.items(), strict=True):
            images, captions = np.split(points, 2)
            pairs = np.stack([images, captions], 1)
            lines = LineCollection(pairs, colors="#999999", lw=0.6)
            look = {"edgecolors": "white", "lw": 0.4}
            handles = [
                axes.scatter(*images.T, s=22, c=style.BLUE, **look),
                axes.scatter(*captions.T, s=26, c=style.ORANGE, marker="^", **look),
                axes.add_collection(lines),
            ]
            axes.set(title=style.shown(title, 44), xticks=[], yticks=[])
            axes.set_aspect("equal", adjustable="datalim")
            axes.spines[:].set(visible=True, color="#cccccc")
        style.legend_below(figure, handles, ["image", "caption", "pair"])
    return figure


def score_curves(
    queries: Mapping[str, tuple[np.ndarray, np.ndarray]], members: Sequence[str]
) -> Figure:
    """A panel per query with its sorted scores (S, L) by S members, and their weights
    (S,)."""
    with style.drawing():
        figure, grid = style.panels(len(queries), columns=3, head=0.3, row=2.3)
        for axes, (title, (curves, weights)) in zip(grid, queries.items(), strict=True):
            share = np.linspace(0, 100, curves.shape[1])
            members_drawn = zip(members, curves, weights, style.COLOURS, strict=False)
            for name, curve, weight, colour in members_drawn:
                label = f"{style.shown(name, 24, lines=1)}: weight {weight:.3f}"
                axes.plot(share, curve, color=colour, label=label)
            axes.axhline(0, color=style.GREY, linewidth=0.8)
            axes.sharey(grid[0])
            axes.legend(loc="upper right")
            axes.set_title(style.shown(title, 44))
        figure.supxlabel("share of the gallery, best first (%)", fontsize=9)
        figure.supylabel("score", fontsize=9)
    return figure


def weight_histograms(
    weights: Mapping[str, np.ndarray], members: Sequence[str]
) -> Figure:
    """Histograms of the weights (S, Q) of every query, a panel per direction."""
    with style.drawing():
        figure, grid = style.panels(len(weights), columns=2, head=0.2, row=2.6)
        for axes, (title, of_way) in zip(grid, weights.items(), strict=True):
            axes.axvspan(*MIDDLE, color="#eeeeee", zorder=0)
            drawn = zip(members, of_way, style.COLOURS, strict=False)
            for name, of_member, colour in drawn:
                look = {"histtype": "stepfilled", "color": colour, "alpha": 0.5}
                label = f" {style.shown(name, 32, lines=1)}"
                axes.hist(of_member, bins=60, label=label, **look)
            axes.legend()
            axes.set(title=style.shown(title, 60), xlabel="weight", ylabel="queries")
    return figure


FIGURES = {"papers/instance_loss": instance_loss, "papers/cyclematch": cyclematch}
