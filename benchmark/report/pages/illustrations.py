"""Which figures a page shows, made from what the cells left behind. Knows no torch.

Every function takes a board and gives pictures: a figure with its name and its words for those who
cannot see it. What has nothing to show gives none. All but `of_localisation` and `of_claims` are of
retrieval.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np
from matplotlib.figure import Figure

from benchmark.analysis import comparisons
from benchmark.analysis.boards import Board, Standing
from benchmark.analysis.claims import Verdict
from benchmark.papers.printed_tables import Paper, Table
from benchmark.report import figure_style
from benchmark.report.figures import (
    correlations,
    distributions,
    embedding_maps,
    forest,
    fusion_weights,
    quality_and_cost,
    recall_by_regions,
    training_curves,
)
from benchmark.report.pages.claim_tables import forest_rows, told

SHORTEST = 1e-6  # milliseconds; a measured zero has no place on a logarithmic axis
LOSSES = ("dual_path_rank_1", "dual_path_instance_1", "dual_path_full_2")
SEPARATED = "dual_path_instance_1"  # figure 5b of the paper
PANELS = 24  # of score densities: the best; S of all others is in the table
SPACES = ("dualmatch", "cyclematch")
SCORED = ("dualmatch", "cyclematch_adaptive")
QUERY = {"i2t": "image query", "t2i": "caption query"}
FUSED = ("cyclematch_adaptive", "cyclematch_hglmm_adaptive")


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure, the name of its file, and its words."""

    name: str
    figure: Figure
    alt: str
    is_scalable: bool = True  # False: of pixels, which a vector file would only hold in bulk


def of_dataset(board: Board) -> Iterator[Picture]:
    """The pictures of a dataset's page; the board is of retrieval."""
    title = board.card["title"]
    panels = [_panel(standing) for standing in board.ranked[:PANELS]]
    listed = ", ".join(f"{panel.title} {panel.overlap:.3f}" for panel in panels)
    yield Picture(
        name="similarities",
        figure=distributions.similarities(panels),
        alt=f"{title}: score densities of matched and unmatched pairs; S: {listed}",
    )
    rows = [row for standing in board.ranked for row in _overlap_rows(standing)]
    if rows:
        yield Picture(
            name="overlaps",
            figure=distributions.overlap_intervals(rows),
            alt=f"{title}: S of every preset with its 95% interval, at other bins, and 1 - KS",
        )
    yield from _trainings("training", board)
    style_of = styles(board)
    yield Picture(
        name="cost",
        figure=quality_and_cost.quality([_price(s, style_of[s.preset]) for s in board.ranked]),
        alt=f"{title}: rsum against the time to train and the time of a query",
    )


def of_localisation(board: Board) -> Iterator[Picture]:
    """The pictures of phrase localisation that show no phrase; the board is of that task."""
    yield from _trainings("localisation-training", board)


def of_paper(name: str, paper: Paper, board: Board) -> Iterator[Picture]:
    """The pictures of a paper's page: its own figures, redrawn from what was measured here."""
    own = {"instance_loss": _instance_loss, "cyclematch": _cyclematch, "scan": _scan}
    if name in own:
        yield from own[name](paper, board.retrieval)


def of_claims(board: Board, verdicts: Sequence[Verdict]) -> Iterator[Picture]:
    """A forest plot of the comparisons that were made."""
    rows = [row for verdict in verdicts for row in forest_rows(verdict)]
    if rows:
        yield Picture(
            name="claims",
            figure=forest.forest(rows),
            alt=f"{board.card['title']}: differences that the claims are about; {told(verdicts)}",
        )


def _instance_loss(paper: Paper, board: Board) -> Iterator[Picture]:
    title = board.card["title"]
    found = [s for s in map(board.standing, LOSSES) if s and s.played]
    if found:
        panels = [_loss_panel(paper, standing) for standing in found]
        listed = ", ".join(f"{panel.title} {panel.overlap:.4f}" for panel in panels)
        yield Picture(
            name="losses",
            figure=distributions.loss_panels(panels),
            alt=f"{title}: score densities by loss; S: {listed}",
        )
    for standing in found:
        pair = [standing.samples.get(f"correlation_{when}") for when in ("before", "after")]
        if all(values is not None for values in pair):
            yield _correlations(title, standing, pair)


def _correlations(title: str, standing: Standing, pair: Sequence[np.ndarray]) -> Picture:
    kind = "input features, standardised" if _is_standardised(standing) else "input features"
    heads = (f"before training: {kind}", "after training: embeddings")
    shapes = [correlations.Matrix(title=h, values=v) for h, v in zip(heads, pair, strict=True)]
    means = [correlations.mean_off_diagonal(values) for values in pair]
    return Picture(
        name=f"correlations-{standing.preset}",
        figure=correlations.correlations(shapes),
        alt=f"{title}, {standing.row.title}: Pearson correlation of {len(pair[0])} images; mean "
        f"absolute value {means[0]:.3f} before training, {means[1]:.3f} after",
    )


def _is_standardised(standing: Standing) -> bool:
    return bool(standing.played[0].record.image_features.get("settings", {}).get("standardise"))


def _cyclematch(paper: Paper, board: Board) -> Iterator[Picture]:
    title = board.card["title"]
    shapes = [shape for preset in SPACES for shape in _spaces(board.standing(preset))]
    if shapes:
        yield Picture(
            name="spaces",
            figure=embedding_maps.spaces(shapes),
            alt=f"{title}: t-SNE of images and captions in {len(shapes)} spaces, pairs joined",
        )
    scored = [s for s in map(board.standing, SCORED) if s and s.samples]
    if scored:
        listed = ", ".join(standing.row.title for standing in scored)
        shapes = [_similarity(standing) for standing in scored]
        yield Picture(
            name="similarity",
            figure=correlations.similarity(shapes),
            alt=f"{title}: scores of {len(shapes[0].values)} images and a caption of each by "
            f"{listed}; matched pairs are the diagonal",
        )
    for standing in filter(None, map(board.standing, FUSED)):
        yield from _fusion(title, standing)


def _similarity(standing: Standing) -> correlations.Matrix:
    return correlations.Matrix(title=standing.row.title, values=standing.samples["similarity"])


def _spaces(standing: Standing | None) -> list[embedding_maps.Space]:
    if standing is None:
        return []
    return [
        embedding_maps.Space(
            title=f"{standing.row.title}: {name.removeprefix('tsne_')} space", places=xy
        )
        for name, xy in standing.samples.items()
        if name.startswith("tsne_")
    ]


def _fusion(title: str, standing: Standing) -> Iterator[Picture]:
    ways = [way for way in QUERY if f"weights_{way}" in standing.samples]
    if not ways:
        return
    name = f"{title}, {standing.row.title}"
    yield Picture(
        name=f"curves-{standing.preset}",
        figure=fusion_weights.score_curves(
            [one for way in ways for one in _falling(standing, way)]
        ),
        alt=f"{name}: sorted scores of a few queries with their adaptive weights",
    )
    yield Picture(
        name=f"weights-{standing.preset}",
        figure=fusion_weights.fusion_weights([_weights(standing, way) for way in ways]),
        alt=f"{name}: adaptive weights of every query",
    )


def _falling(standing: Standing, way: str) -> list[fusion_weights.QueryCurves]:
    samples = standing.samples
    return [
        fusion_weights.QueryCurves(
            title=f"{QUERY[way]} {query}",
            members=_members(standing),
            curves=samples[f"curves_{way}"][:, number],
            weights=samples[f"weights_{way}"][:, query],
        )
        for number, query in enumerate(samples[f"curve_queries_{way}"])
    ]


def _weights(standing: Standing, way: str) -> fusion_weights.QueryWeights:
    return fusion_weights.QueryWeights(
        title=f"by {QUERY[way]}",
        members=_members(standing),
        weights=standing.samples[f"weights_{way}"],
    )


def _members(standing: Standing) -> list[str]:
    return [part.partition(":")[2] or part for part in standing.row.fuse.of]


def _scan(paper: Paper, board: Board) -> Iterator[Picture]:
    counts = {f"scan_{k}_regions": k for k in (12, 24, 48, 60)} | {"scan_i2t_avg": 36}
    ours = _sweep(board, counts)
    where = board.card["title"] if ours else "as printed, not played in this season"
    yield Picture(
        name="regions",
        figure=recall_by_regions.regions([_printed_sweep(paper.tables["5"], counts), *ours]),
        alt=f"R@1 and time of a pair against the number of regions: {where}",
    )


def _sweep(board: Board, counts: dict[str, int]) -> list[recall_by_regions.Sweep]:
    """The one measured here; none for fewer than two numbers of regions."""
    found = [(k, s) for preset, k in counts.items() if (s := board.standing(preset)) and s.played]
    if len(found) < 2 or len(board.ways) < 2:
        return []
    found.sort(key=lambda pair: pair[0])
    standings = [standing for _, standing in found]
    sweep = recall_by_regions.Sweep(
        title=f"here, {board.card['title']}",
        regions=np.array([k for k, _ in found]),
        i2t_r1=np.array([s.mean("i2t_r1") for s in standings]),
        t2i_r1=np.array([s.mean("t2i_r1") for s in standings]),
        i2t_deviation=np.array([_deviation(s.values("i2t_r1")) for s in standings]),
        t2i_deviation=np.array([_deviation(s.values("t2i_r1")) for s in standings]),
        microseconds=np.array([fmean(comparisons.values(s, "per_pair")) for s in standings]),
    )
    return [sweep]


def _printed_sweep(table: Table, counts: dict[str, int]) -> recall_by_regions.Sweep:
    rows = {row.preset: row for row in table.rows}
    order = sorted((k, preset) for preset, k in counts.items())
    found = [table.numbers(rows[preset], "flickr30k/test") for _, preset in order]
    still = np.zeros(len(order))
    return recall_by_regions.Sweep(
        title="printed, Flickr30K on an M40",
        is_printed=True,
        regions=np.array([k for k, _ in order]),
        i2t_r1=np.array([row["i2t_r1"] for row in found]),
        t2i_r1=np.array([row["t2i_r1"] for row in found]),
        i2t_deviation=still,
        t2i_deviation=still,
        microseconds=np.array([row["per_pair"] for row in found]),
    )


def _metrics(standing: Standing) -> dict:
    return standing.played[0].record.metrics


def _panel(standing: Standing) -> distributions.Panel:
    """Of the first seed of a preset."""
    scores = standing.played[0].arrays("scores/similarities.npz")
    return distributions.Panel(
        title=standing.row.title,
        overlap=_metrics(standing)["overlap_s"],
        bound=_metrics(standing)["one_minus_ks"],
        matched=scores["matched_sample"],
        unmatched=scores["unmatched_sample"],
    )


def _loss_panel(paper: Paper, standing: Standing) -> distributions.LossPanel:
    metrics, panel = _metrics(standing), _panel(standing)
    return distributions.LossPanel(
        title=panel.title,
        overlap=panel.overlap,
        mean_matched=metrics["mean_matched"],
        mean_unmatched=metrics["mean_unmatched"],
        matched=panel.matched,
        unmatched=panel.unmatched,
        printed=_said(paper, standing.preset),
    )


def _said(paper: Paper, preset: str) -> distributions.Printed:
    """What the paper prints of a preset: S, and of one the means of both kinds of pairs."""
    claims = {claim.id: claim for claim in paper.claims}
    order, means = claims["overlap_order"], claims["instance_loss_separates"].printed
    overlap = dict(zip(order.presets, order.printed, strict=True))[preset]
    if preset != SEPARATED:
        return distributions.Printed(overlap=overlap)
    return distributions.Printed(overlap=overlap, mean_matched=means[0], mean_unmatched=means[1])


def _overlap_rows(standing: Standing) -> list[distributions.OverlapRow]:
    """Of the first seed with an interval, if one has it."""
    measured = [outcome.record.metrics for outcome in standing.played]
    return [
        distributions.OverlapRow(
            title=standing.row.title,
            overlap=metrics["overlap_s"],
            low=metrics["overlap_s_low"],
            high=metrics["overlap_s_high"],
            half_bins=metrics["overlap_s_half_bins"],
            double_bins=metrics["overlap_s_double_bins"],
            bound=metrics["one_minus_ks"],
        )
        for metrics in measured
        if "overlap_s_low" in metrics
    ][:1]


def _price(standing: Standing, style: figure_style.Style) -> quality_and_cost.Price:
    return quality_and_cost.Price(
        title=standing.row.title,
        style=style,
        rsum=standing.mean("rsum"),
        deviation=_deviation(standing.values("rsum")),
        training_seconds=training_seconds(standing) or None,
        query_milliseconds=max(1e3 * query_seconds(standing), SHORTEST),
    )


def training_seconds(standing: Standing) -> float:
    """Mean over the seeds."""
    return fmean(outcome.training_seconds for outcome in standing.played)


def query_seconds(standing: Standing) -> float:
    """A query is an image among all captions, or, where images are not asked for captions, a
    caption among all images: it is encoded once, and scored with each."""
    record = standing.played[0].record
    is_image = "i2t_r1" in record.metrics
    encoding = "per_image" if is_image else "per_caption"
    items = record.captions if is_image else record.images
    return fmean(
        outcome.scoring.seconds[encoding] + items * outcome.scoring.seconds["per_pair"]
        for outcome in standing.played
    )


def styles(board: Board) -> dict[str, figure_style.Style]:
    """How each preset looks in every figure of the board."""
    found = figure_style.styles([standing.method for standing in board.standings])
    return {s.preset: style for s, style in zip(board.standings, found, strict=True)}


def _trainings(name: str, board: Board) -> Iterator[Picture]:
    curves = _curves(board, styles(board))
    if curves:
        yield Picture(
            name=name,
            figure=training_curves.training(curves),
            alt=f"{board.card['title']}: training loss and validation rsum by epoch",
        )


def _curves(board: Board, style_of: dict[str, figure_style.Style]) -> list[training_curves.Curve]:
    return [
        training_curves.Curve(
            title=standing.row.title,
            method=standing.method,
            style=style_of[standing.preset],
            is_first_seed=outcome is standing.played[0],
            epochs=outcome.history["epoch"].to_numpy(),
            loss=outcome.history["loss"].to_numpy(),
            rsum=outcome.history["val_rsum"].to_numpy(),
            selected=outcome.record.selected_epoch,
        )
        for standing in board.standings
        for outcome in standing.played
        if outcome.history is not None
    ]


def _deviation(found: Sequence[float]) -> float:
    return stdev(found) if len(found) > 1 else 0.0
