"""What of a preset differs from its paper, and what its numbers lack, from what its records say.

Derived when a report is made, so that records which are older than a remark have it, too. Knows no
torch.
"""

from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from functools import lru_cache

from benchmark.analysis import comparisons, image_noise, twin_queries
from benchmark.analysis.boards import Board, Outcome, Standing
from benchmark.analysis.convergence import is_best_early, is_rising

ENOUGH = 3  # trainings
UNKNOWN = "unknown"
NEAR_CHANCE = 3  # times the rsum of random scores
CUTOFFS = (1, 5, 10)  # of the recalls that rsum adds


class Departure(StrEnum):
    """In short, for the row of a preset."""

    FEATURES = "features"  # of another image network, or scaled
    REGIONS = "regions"  # grid cells or other proposals
    WORDS = "words"  # vectors of another origin
    ENCODER = "text encoder"  # of sentences or phrases, another one
    TEXT = "random text encoder"  # the sentence encoder has random weights
    PIXELS = "smaller pictures"  # than those that the features were made of
    BUDGET = "budget"  # options that the season scaled
    RISING = "not converged"  # half of the trainings or more still improved when the budget ended
    EARLY = "best early"  # half of the trainings or more, in the first quarter of their epochs
    CHANCE = "near chance"  # rsum, or its interval, reaches below NEAR_CHANCE times random scores
    START = "below its start"  # validation never came back to that of what it goes on from
    INPUT = "extra input"  # annotated phrases at test time
    ENSEMBLE = "ensemble"  # of several trainings
    FEW = "few trainings"
    SPLIT = "split"  # pictures in more than one split
    COMMIT = "commit"  # of the code is not known
    ADDED = "seeds added"  # trained at another commit, so maybe after results were seen


IN_DEVIATIONS = {  # how sentences of a record begin, or what they say
    Departure.FEATURES: ("image features",),
    Departure.REGIONS: ("regions:", "proposals:"),
    Departure.WORDS: ("word vectors", "sentence vectors: word", "phrase vectors: word"),
    Departure.TEXT: ("sentence vectors: random",),
}
FROM_PAPER = (Departure.FEATURES, Departure.REGIONS, Departure.WORDS, Departure.ENCODER)


@lru_cache(maxsize=1024)
def departures(board: Board, standing: Standing) -> dict[Departure, str]:
    """A sentence for each departure that there is, in the order of Departure.

    An own method has no paper that it could differ from, and what was brought along is one set of
    scores: no number of trainings is too few.
    """
    texts = _of_record(standing) | _of_trainings(board, standing) | _of_card(board)
    texts[Departure.CHANCE] = _near_chance(board, standing)
    kinds = [
        kind
        for kind in Departure
        if not (standing.is_own and kind in FROM_PAPER)
        and not (standing.is_brought and kind == Departure.FEW)
    ]
    return {kind: texts[kind] for kind in kinds if texts.get(kind)}


def _of_record(standing: Standing) -> dict[Departure, str]:
    record, row = standing.outcomes[0].record, standing.row
    lines = list(record.deviations)
    network = record.image_features.get("settings", {}).get("network")
    paper = row.network
    if network and paper and network != paper:
        lines = [line for line in lines if line != f"image features: {network}"]
        lines = list(dict.fromkeys([f"image features: {network}, in the paper {paper}", *lines]))
    if record.text_features.get("weights") == "random weights":
        lines.append("sentence vectors: random weights, in the paper pretrained ones")
    texts = {
        kind: "; ".join(line for line in lines if line.startswith(starts))
        for kind, starts in IN_DEVIATIONS.items()
    }
    scaled = [f"{n} = {record.options[n]}" if n in record.options else n for n in record.scaled]
    other = other_encoder(standing)
    if other:
        texts[Departure.ENCODER] = f"sentence vectors: {other}, in the paper {row.sentence}"
    texts[Departure.PIXELS] = _smaller_pictures(standing)
    texts[Departure.BUDGET] = ", ".join(scaled)
    if record.task == "retrieval" and _reads_phrases(standing.outcomes[0]):
        texts[Departure.INPUT] = "phrases that are annotated in the test captions"
    return texts


def _smaller_pictures(standing: Standing) -> str:
    """Where a training from pixels sees less of them than the network that made its features."""
    record = standing.outcomes[0].record
    settings = record.image_features.get("settings", {})
    side, before = settings.get("pixels", 0), settings.get("input_size", 0)
    if record.options.get("stage") != 2 or not side or _crop(side) >= before:
        return ""
    return (
        f"trained from pictures of {side} pixels a side, in crops of {_crop(side)}, after features "
        f"of pictures of {before}"
    )


def _crop(side: int) -> int:
    """Pixels a side of the crops of a picture, Section VI-B of the instance-loss paper."""
    return side * 224 // 256


def other_encoder(standing: Standing) -> str:
    """Name of the sentence vectors that it read; "" where they are of the paper's encoder."""
    folder = standing.outcomes[0].record.text_features.get("encoder", "")
    own = standing.row.sentence
    if not own or not folder or folder.removeprefix("phrases_").startswith(own):
        return ""
    return folder


def _reads_phrases(outcome: Outcome) -> bool:
    """Whether phrases of the test captions are an input, as for phrase localisation."""
    features = [
        feature
        for identity in outcome.record.trainings.values()
        for feature in identity.get("features", {})
    ]
    is_fed = any(feature.rpartition("/")[2].startswith("phrases_") for feature in features)
    return is_fed or any(line.startswith("phrase vectors") for line in outcome.record.deviations)


def _of_trainings(board: Board, standing: Standing) -> dict[Departure, str]:
    texts = {}
    own = comparisons.trainings_of(board, standing)
    if len(own) > 1:
        texts[Departure.ENSEMBLE] = f"{len(own)} trainings: {', '.join(sorted(own))}"
    texts[Departure.RISING] = _most(_judged(board, own, is_rising), "still improved at the end")
    ended = "were best in the first quarter of their epochs, and fell"
    texts[Departure.EARLY] = _most(_judged(board, own, is_best_early), ended)
    texts[Departure.START] = _below_start(board, standing)
    count = len(standing.played)
    if count < ENOUGH:
        texts[Departure.FEW] = f"{count} training{'s' * (count != 1)} of {ENOUGH}"
    commits = [t.git_commit for o in standing.played for t in (*o.trainings, o.scoring)]
    if any(UNKNOWN in commit or not commit for commit in commits):
        texts[Departure.COMMIT] = "the commit of its code is not known"
    texts[Departure.ADDED] = _added(standing)
    return texts


def is_convergence_known(board: Board, standing: Standing) -> bool:
    """Whether a training of the row tells if it still improved when its budget ended."""
    return bool(_judged(board, comparisons.trainings_of(board, standing), is_rising))


def _judged(
    board: Board, trainings: Collection[str], judge: Callable[[Outcome], bool | None]
) -> list[bool]:
    """What is said of each training of these presets, where it can be told."""
    members = [comparisons.known(board, name) for name in trainings]
    judged = [judge(o) for member in members if member for o in member.played]
    return [is_it for is_it in judged if is_it is not None]


def _most(judged: Sequence[bool], what: str) -> str:
    """How many trainings did so, if half of them or more did."""
    count = sum(judged)
    return (
        f"{count} of {len(judged)} trainings {what}" if count and 2 * count >= len(judged) else ""
    )


def _below_start(board: Board, standing: Standing) -> str:
    """The trainings whose best validation rsum is less than that of what they go on from."""
    fallen = [
        f"seed {seed}: {best:.1f}, begun at {first:.1f}"
        for seed, (best, first) in _from_start(board, standing).items()
        if best < first
    ]
    return f"best validation rsum: {'; '.join(fallen)}" if fallen else ""


def is_below_start(board: Board, standing: Standing) -> bool:
    """Whether the mean of the best validation rsums is less than that of what they go on from."""
    pairs = _from_start(board, standing).values()
    return bool(pairs) and sum(best - first for best, first in pairs) < 0


def _from_start(board: Board, standing: Standing) -> dict[int, tuple[float, float]]:
    """The best validation rsum of each training, and that of what it goes on from, by seed."""
    start = comparisons.known(board, standing.row.start) if standing.row.start else None
    before = {o.record.seed: _best(o) for o in start.played} if start else {}
    after = {o.record.seed: _best(o) for o in standing.played}
    seeds = sorted(after.keys() & before.keys())
    pairs = {seed: (after[seed], before[seed]) for seed in seeds}
    return {seed: pair for seed, pair in pairs.items() if None not in pair}


def _best(outcome: Outcome) -> float | None:
    """The best validation rsum of a training; None where nothing is known of it."""
    if outcome.history is None or "val_rsum" not in outcome.history:
        return None
    return float(outcome.history["val_rsum"].max())


def _added(standing: Standing) -> str:
    """The seeds whose training has another commit than that of the first seed."""
    commits = {o.record.seed: o.trainings[0].git_commit for o in standing.played if o.trainings}
    first = next(iter(commits.values()), "")
    added = [str(seed) for seed, commit in commits.items() if commit != first]
    if not added:
        return ""
    seeds = f"seed{'s' * (len(added) > 1)} {', '.join(added)}"
    return f"{seeds}: another commit than the first seed, so maybe trained after results were seen"


def _near_chance(board: Board, standing: Standing) -> str:
    """Of random scores 1, 5 and 10 of N images are ranked that high, in both directions."""
    if standing.task != "retrieval" or not standing.played:
        return ""
    images, rsum = _images(board), standing.mean("rsum")
    if rsum is None:
        return ""
    said = near_chance(rsum, len(board.ways), images)
    ends = comparisons.interval(board, standing, "rsum")
    if said or not ends or not near_chance(ends[0], len(board.ways), images):
        return said
    below = f"reaches below {NEAR_CHANCE} times random scores"
    return f"the interval of rsum, {ends[0]:.1f} to {ends[1]:.1f}, {below}"


def _images(board: Board) -> float:
    """How many test images there are for each that is relevant; several of a group may be, and
    only datasets that search one way have groups."""
    if len(board.ways) > 1:
        return board.card["counts"]["test"]["images"]
    return image_noise.choices(board.dataset)


def near_chance(rsum: float, ways: int, images: float) -> str:
    """What is said of an rsum that is near that of random scores, with these directions and so many
    images for each that is relevant; "" of a better one. Of few images many are right by chance:
    there, the rsum must only be nearer to perfect scores than to random ones."""
    by_chance = ways * 100 * sum(min(k, images) for k in CUTOFFS) / images
    half_way = (by_chance + ways * 100 * len(CUTOFFS)) / 2
    if rsum < min(NEAR_CHANCE * by_chance, half_way):
        times = f"{NEAR_CHANCE} times the {by_chance:.1f} of random scores"
        return f"rsum {rsum:.1f} is less than {times}"
    return ""


def _of_card(board: Board) -> dict[Departure, str]:
    twins = twin_queries.twins_in_all(board.card)
    return {Departure.SPLIT: f"{twins} test pictures have a twin in another split"} if twins else {}
