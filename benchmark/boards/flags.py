"""What a reader must know of a row and of a verdict: one kind of thing, a Flag.

Derived when a report is made, so that records which are older than a flag have it, too. Nothing is
concluded where a flag blocks: where the spread of trainings is not known, near chance, where
fine-tuning cost both rows what they began with, where S depends on the number of bins, of times
that were taken in different settings, and with fewer than 100 test queries in a direction.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from benchmark.boards import comparisons
from benchmark.boards.boards import Board, Outcome, Row
from benchmark.papers.claimed_quantities import is_time, quantity, sides
from benchmark.papers.equal_settings import scaled_differently
from benchmark.papers.printed_tables import Claim, title_of
from benchmark.scoring.metrics import SUMMED_K
from benchmark.stats.comparisons import Comparison
from benchmark.stats.verdicts import NOTHING_VARIES, Flag

ENOUGH = 3  # trainings
NEAR_CHANCE = 3  # times the rsum of random scores
SHARE, FEWEST, QUARTER = 3, 3, 4  # of the epochs: the last third, or three; the first quarter
TOLERANCE = 0.01  # a gain of less than this share of the best value is none
OTHER_WORDS = ("word vectors", "sentence vectors: word", "phrase vectors: word")
FEATURES = ("image features", "regions:", "proposals:", *OTHER_WORDS)  # beginnings of deviations
NAMES = {  # by letter; those of rows first, the gravest first
    "N": "near chance",
    "T": "random text encoder",
    "X": "extra input",
    "C": "not converged",
    "S": f"fewer than {ENOUGH} seeds",
    "F": "other features",
    "G": "text encoder",
    "P": "twin images",
    "K": "unknown commit",
    "D": "below its start",
    "E": "best early",
    "A": "seeds added",
    "U": "unequal settings",
    "Q": "evened settings",
    "H": "tuned on one side",
    "I": "these test images",
    "L": "few test queries",
    "Y": "unlike machines",
    "Z": "coarse bins",
    "O": "no spread",
    "R": "not run",
}
GRAVE = "NTXCSFGPK"  # letters that a leaderboard shows: why a row may not stand for its paper
BESIDE = "NDTXEUQH"  # letters of which the name stands beside a verdict
OF_ROWS = "NDTGXCEA"  # letters of rows that count against a verdict on them
FROM_PAPER = "FG"  # not of own methods: there is no paper


def said(flag: Flag) -> str:
    """A flag as text: its name and its sentence."""
    return f"{NAMES[flag.letter]}: {flag.sentence}"


def letters(flags: Iterable[Flag], among: str = GRAVE) -> str:
    """The letters of flags, gravest first."""
    present = {flag.letter for flag in flags}
    return "".join(letter for letter in among if letter in present)


@lru_cache(maxsize=1024)
def row_flags(board: Board, row: Row) -> list[Flag]:
    """What a reader must know of a row, gravest first.

    An own method has no paper that it could differ from, and an external row is one set of scores:
    no number of trainings is too few.
    """
    texts = _of_record(row) | _of_trainings(board, row)
    texts["N"] = _near_chance(board, row)
    twins = comparisons.twins_in_all(board.card)
    texts["P"] = f"{twins} test images have a twin in another split" if twins else ""
    without = FROM_PAPER * row.is_own + "S" * row.is_external
    shown = [letter for letter in NAMES if texts.get(letter) and letter not in without]
    return [Flag(letter, texts[letter], blocks=letter == "N") for letter in shown]


def has_flag(board: Board, row: Row, letter: str) -> bool:
    """Whether a row has the flag of this letter."""
    return any(flag.letter == letter for flag in row_flags(board, row))


def _of_record(row: Row) -> dict[str, str]:
    record, lines, texts = row.record, list(row.record.deviations), {}
    settings = record.image_features.get("settings", {})
    network, in_paper = settings.get("network"), row.declared.network
    if network and in_paper and network != in_paper:  # older records do not name the paper's
        lines = [line for line in lines if line != f"image features: {network}"]
        lines = [f"image features: {network}, in the paper {in_paper}", *lines]
    features = [line for start in FEATURES for line in lines if line.startswith(start)]
    texts["F"] = "; ".join(dict.fromkeys(features))
    random = [line for line in lines if line.startswith("sentence vectors: random")]
    if record.text_features.get("weights") == "random weights":
        random.append("sentence vectors: random weights, in the paper pretrained ones")
    texts["T"] = "; ".join(random)
    if other := _other_encoder(row):
        texts["G"] = f"sentence vectors: {other}, in the paper {row.declared.sentence}"
    fed = [name for of in record.trainings.values() for name in of.get("features", {})]
    reads_phrases = any(name.rpartition("/")[2].startswith("phrases_") for name in fed)
    reads_phrases |= any(line.startswith("phrase vectors") for line in lines)
    if record.task == "retrieval" and reads_phrases:
        texts["X"] = "phrases that are annotated in the test captions"
    return texts


def _other_encoder(row: Row) -> str:
    """Name of the sentence vectors that it read; "" where they are of the paper's encoder."""
    folder, own = row.record.text_features.get("encoder", ""), row.declared.sentence
    is_own = not own or not folder or folder.removeprefix("phrases_").startswith(own)
    return "" if is_own else folder


def _of_trainings(board: Board, row: Row) -> dict[str, str]:
    own, texts = comparisons.trainings_of(board, row), {}
    members = [comparisons.known(board, name) for name in sorted(own)]
    outcomes = [outcome for member in members if member for outcome in member.played]
    rose, early = (
        "still improved at the end",
        "were best in the first quarter of their epochs, and fell",
    )
    for letter, said, what in (("C", is_rising, rose), ("E", is_early, early)):
        known = [said(outcome) for outcome in outcomes if said(outcome) is not None]
        if any(known) and 2 * sum(known) >= len(known):
            texts[letter] = f"{sum(known)} of {len(known)} trainings {what}"
    fallen = [
        f"seed {seed}: {best:.1f}, begun at {first:.1f}"
        for seed, (best, first) in _from_start(board, row).items()
        if best < first
    ]
    texts["D"] = f"best validation rsum: {'; '.join(fallen)}" if fallen else ""
    if (count := len(row.played)) < ENOUGH:
        texts["S"] = f"{count} training{'s' * (count != 1)} of {ENOUGH}"
    commits = [facts.git_commit for o in row.played for facts in (*o.trainings, o.scoring)]
    if any("unknown" in commit or not commit for commit in commits):
        texts["K"] = "the commit of its code is not known"
    of_seed = {o.record.seed: o.trainings[0].git_commit for o in row.played if o.trainings}
    added = [str(seed) for seed, of in of_seed.items() if of != next(iter(of_seed.values()))]
    if added:
        why = "another commit than the first seed, so maybe trained after results were seen"
        texts["A"] = f"seed{'s' * (len(added) > 1)} {', '.join(added)}: {why}"
    return texts


def gain(history: pd.DataFrame) -> float | None:
    """How much the validation rsum rose over the last third of the epochs, by a straight line, as a
    share of its best value; None for fewer than two epochs.

    Epochs before the last change of the learning rate are left out where three or more follow it:
    the rise at the change itself says nothing of what comes.
    """
    values_E = history["val_rsum"].to_numpy(dtype=float)
    count = len(values_E)
    if count < 2 or values_E.max() <= 0:
        return None
    start = max(0, count - max(FEWEST, -(-count // SHARE)))
    rates_E = history["learning_rate"].to_numpy() if "learning_rate" in history else np.ones(count)
    changed = np.flatnonzero(np.diff(rates_E)) + 1
    if len(changed) and count - changed[-1] >= FEWEST:
        start = max(start, changed[-1])
    last_E = values_E[start:]
    slope = np.polyfit(np.arange(len(last_E)), last_E, 1)[0]
    return float(slope * (len(last_E) - 1) / values_E.max())


def is_rising(outcome: Outcome) -> bool | None:
    """Whether the training would have gone on improving; None: it has too few epochs to tell."""
    rise = gain(outcome.history) if "val_rsum" in outcome.record.history else None
    return None if rise is None else rise > TOLERANCE


def is_early(outcome: Outcome) -> bool | None:
    """Whether the best epoch lies in the first quarter and validation fell afterwards, as where the
    rate is too high or the model over-fits; None: it has too few epochs to tell."""
    values_E = np.array(outcome.record.history.get("val_rsum", []), dtype=float)
    if len(values_E) < QUARTER or values_E.max() <= 0:
        return None
    is_in_quarter = QUARTER * (values_E.argmax() + 1) <= len(values_E)
    return bool(is_in_quarter and values_E[-1] < (1 - TOLERANCE) * values_E.max())


def _from_start(board: Board, row: Row) -> dict[int, tuple[float, float]]:
    """The best validation rsum of each training, and that of what it goes on from, by seed."""
    start = comparisons.known(board, row.declared.start) if row.declared.start else None
    if start is None:
        return {}
    histories = [{o.record.seed: o.record.history for o in of.played} for of in (row, start)]
    after, before = ({s: of[s]["val_rsum"] for s in of if "val_rsum" in of[s]} for of in histories)
    seeds = sorted(after.keys() & before.keys())
    return {seed: (max(after[seed]), max(before[seed])) for seed in seeds}


def _near_chance(board: Board, row: Row) -> str:
    """Of random scores 1, 5 and 10 of N images are ranked that high, in both directions."""
    rsum, ways = row.mean("rsum"), len(board.ways)
    if row.task != "retrieval" or not row.played or rsum is None:
        return ""
    images = board.card["counts"]["test"]["images"]
    if ways == 1:  # only datasets that search one way have groups of images
        images = choices_of(board.groups.of_image)
    of_mean, ends = near_chance(rsum, ways, images), comparisons.interval(board, row, "rsum")
    if of_mean or not ends or not near_chance(ends[0], ways, images):
        return of_mean
    below = f"reaches below {NEAR_CHANCE} times random scores"
    return f"the interval of rsum, {ends[0]:.1f} to {ends[1]:.1f}, {below}"


def choices_of(group_of_image: np.ndarray) -> float:
    """How many images there are for each relevant one, over captions that search them: all, or
    fewer where several images of a group are relevant."""
    sizes = np.bincount(group_of_image)
    return float(sizes.sum() ** 2 / np.square(sizes).sum())


def chance(ways: int, images: float) -> float:
    """The rsum of random scores, with these directions and so many images for each relevant one."""
    return ways * 100 * sum(min(k, images) for k in SUMMED_K) / images


def near_chance(rsum: float, ways: int, images: float) -> str:
    """What is said of an rsum that is near that of random scores, with these directions and so many
    images for each that is relevant; "" of a better one. Of few images many are right by chance:
    there, the rsum must only be nearer to perfect scores than to random ones."""
    by_chance = chance(ways, images)
    half_way = (by_chance + ways * 100 * len(SUMMED_K)) / 2
    is_near = rsum < min(NEAR_CHANCE * by_chance, half_way)
    than = f"{NEAR_CHANCE} times the {by_chance:.1f} of random scores"
    return f"rsum {rsum:.1f} is less than {than}" if is_near else ""


def time_settings(row: Row) -> list[str]:
    """Machine, how its processor computes, device, threads, workers and versions, of all trainings
    and scorings; several where seeds were run on different ones: their times cannot be compared."""
    texts = set()
    for outcome in row.played:
        fingerprint = outcome.record.numerics.get("fingerprint", "unknown")
        for facts in (*outcome.trainings, outcome.scoring):
            on_cpu = f"threads: {facts.threads}, fingerprint {fingerprint}"
            device = on_cpu if facts.device == "cpu" else facts.device
            workers = f", workers: {facts.workers}" if facts.workers > 1 else ""
            version = facts.packages.get("torch", "unknown")
            texts.add(f"{facts.machine}, {device}{workers}, torch {version}")
    return sorted(texts)


def not_run(board: Board, claim: Claim) -> Flag | None:
    """Why a claim was not run on a board; None where it was."""
    reason = claim.unplayed.removesuffix(".") or _lack(board, claim)
    return Flag("R", reason, blocks=True) if reason else None


def _lack(board: Board, claim: Claim) -> str:
    rows = [board.row(preset) for preset in claim.presets]
    for preset, row in zip(claim.presets, rows, strict=True):
        if row is None:
            return f"{title_of(preset)} was not played"
        if not row.played:
            return f"{row.title}: {row.record.status.replace('_', ' ')}: {row.record.reason}"
        if not comparisons.usable(row, claim.metric):
            return f"{quantity(claim.metric).heading} of {row.title} was not measured"
    if claim.weights:
        # A claim about trained weights is not tested with random ones, nor, where one side alone
        # reads word vectors, with vectors that were trained on the captions at hand.
        random = [row.title for row in rows if has_flag(board, row, "T")]
        if random:
            return f"{' and '.join(random)} was played with a random text encoder"
        deviations = {row.title: row.record.deviations for row in rows if not row.is_own}
        words = [
            t for t, lines in deviations.items() if any(x.startswith(OTHER_WORDS) for x in lines)
        ]
        if 0 < len(words) < len(rows):
            return f"{' and '.join(words)} was played with other word vectors"
    if len({row.method for row in rows}) > 1:
        return ""
    # What a paper compares under one method must differ here, too, and be its own.
    if len({row.declared.sentence for row in rows}) > 1:
        for row in rows:
            if other := _other_encoder(row):
                return f"{row.title} was played with {other}"
    if len({row.declared.network for row in rows}) > 1:
        settings = [row.record.image_features.get("settings", {}) for row in rows]
        networks = {of.get("network") for of in settings}
        if len(networks) == 1 and None not in networks:
            return f"all were played with {networks.pop()}"
    return ""


def obstacle(board: Board, comparison: Comparison) -> Flag | None:
    """Why nothing can be concluded from a comparison, whatever its numbers; None: it can."""
    rows = [board.row(preset) for preset in (comparison.first, comparison.second) if preset]
    of_times, task = is_time(comparison.metric), rows[0].task
    poor = [row.title for row in rows if has_flag(board, row, "N")]
    gains = [sum(best - first for best, first in _from_start(board, r).values()) for r in rows]
    if board.is_small(task):
        said = "L", f"nothing can be concluded from {board.test_queries(task)} test queries"
    elif of_times and len(settings := {text for row in rows for text in time_settings(row)}) > 1:
        said = "Y", f"timed in {len(settings)} settings, of machine, threads or versions"
    elif poor and not of_times:
        said = "N", f"next to nothing was learned by {' and '.join(poor)}"
    elif len(rows) > 1 and not of_times and max(gains) < 0:
        said = (
            "D",
            "fine-tuning left both worse than they began, so the order may be that of before",
        )
    elif "overlap_s" in sides(comparison.metric) and any(map(comparisons.is_coarse, rows)):
        coarse = [row.title for row in rows if comparisons.is_coarse(row)]
        said = "Z", f"S of {' and '.join(coarse)} depends on its bins"
    elif not comparison.is_of_these_trainings:
        return None
    elif min(count for count in comparison.trainings if count) > 1:
        return NOTHING_VARIES
    elif of_times:
        said = "S", "timed once, maybe beside other work"
    else:
        said = "S", "1 seed, and no other preset tells how far trainings lie apart"
    return Flag(*said, blocks=True)


def claim_flags(board: Board, presets: Iterable[str], compared: Sequence[Comparison]) -> list[Flag]:
    """What of the rows of a claim, then of each comparison, speaks against trusting a verdict."""
    rows = [board.row(preset) for preset in presets]
    flags = []
    for letter in OF_ROWS:
        titles = [row.title for row in rows if has_flag(board, row, letter)]
        flags += [Flag(letter, "; ".join(titles))] if titles else []
    for comparison in compared:
        pair = [r for name in (comparison.first, comparison.second) if (r := board.row(name))]
        texts = _settings(*pair) | {"H": _tuned(board, *pair)} if len(pair) == 2 else {}
        is_known = comparison.interval is None or comparison.doubt.image_count
        if not is_known and not is_time(comparison.metric):  # of times other images make no sense
            texts["I"] = "the interval is for other trainings only"
        flags += [Flag(letter, text) for letter, text in texts.items() if text]
    return list(dict.fromkeys(flags))


def _settings(first: Row, second: Row) -> dict[str, str]:
    """Of rows that are trained alike, anew or from another one: U, what a season scales to
    different values; Q, what the paper has different for them, and the season has not."""
    kinds = {(row.method, bool(row.declared.start)) for row in (first, second)}
    if len(kinds) > 1 or first.declared.fuse or second.declared.fuse:
        return {}
    records, rows = (first.record, second.record), (first.declared.options, second.declared.options)
    changed = [{n: r.options[n] for n in r.scaled if n in r.options} for r in records]
    others, unequal, evened = scaled_differently(*changed, *rows), [], []
    for name in sorted({*records[0].scaled, *records[1].scaled}):
        here, there = (record.options.get(name) for record in records)
        if here == there and rows[0].get(name) != rows[1].get(name):
            evened.append(name)
        if name in others and str(here) != str(there):
            unequal.append(f"{name} {here} and {there}")
    return {"U": ", ".join(unequal), "Q": ", ".join(evened)}


def _tuned(board: Board, first: Row, second: Row) -> str:
    """Which of two rows, or of their methods, had trials on validation alone. Trials of one preset
    serve its method: against another method they count for all of its presets."""
    tried = [row for row in (first, second) if row.preset in board.tried]
    if first.method != second.method:
        methods = {row.method for row in board.rows if row.preset in board.tried}
        tried = [row for row in (first, second) if row.method in methods]
    return tried[0].title if len(tried) == 1 else ""
