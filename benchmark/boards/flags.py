"""What a reader must know of a row and of a verdict: one kind of thing, a Flag.

Derived when a report is made, so that records which are older than a flag have it, too.
Nothing is concluded where a flag blocks. docs/statistics.md has a table of all flags.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from benchmark.boards import comparisons
from benchmark.boards.boards import Board, Row
from benchmark.core.departures import Aspect, Departure, sentence
from benchmark.core.records import Record
from benchmark.papers.printed_tables import (
    Claim,
    Part,
    is_time,
    quantity,
    sides,
    title_of,
    unequal,
)
from benchmark.scoring.metrics import SUMMED_K
from benchmark.stats.comparisons import Comparison
from benchmark.stats.verdicts import NOTHING_VARIES, Flag, Pair

ENOUGH = 3  # trainings
NEAR_CHANCE = 3  # times the rsum of random scores
NEARLY = 0.98  # of the largest rsum
BESIDE = " stages at once"
# of the epochs: the last third, or three; the first quarter
SHARE, FEWEST, QUARTER = 3, 3, 4
TOLERANCE = 0.01  # a gain of less than this share of the best value is none
STARTS_ALIKE = (
    "the method sets a seed itself, so that every training starts from the same weights"
)
IN_ORDER = (  # of what departs: how the flag of features lists it
    (Aspect.IMAGE_NETWORK, Aspect.IMAGES_STANDARDISED),
    (Aspect.GRID_REGIONS,),
    (Aspect.PROPOSALS,),
    (Aspect.WORD_VECTORS,),
    (Aspect.TEXT_VECTORS,),
)
# letter -> name, and what helps where it blocks a verdict; those that do come first
FLAGS = {
    "N": ("near chance", "a row above chance"),
    "D": ("below its start", "fine-tuning that improves on its start"),
    "S": (f"fewer than {ENOUGH} seeds", f"{ENOUGH} seeds"),
    "G": ("other text encoder", "the paper's text encoder"),
    "L": ("few test queries", "100 test queries"),
    "M": ("identical results", "rows that differ"),
    "U": ("unequal settings", "equal settings"),
    "H": ("unlike trials", "equal trials"),
    "Y": ("unlike machines", "times of one idle machine"),
    "Z": ("coarse bins", "S of more scores"),
    "O": ("no spread", "further seeds"),
    "2": ("unconfirmed", "a control that agrees"),
    "V": ("nearly perfect", ""),
    "T": ("random text encoder", ""),
    "X": ("extra input", ""),
    "4": ("other test queries", ""),
    "W": ("other release of the data", ""),
    "C": ("not converged", ""),
    "J": ("seeds alike", ""),
    "F": ("other features", ""),
    "P": ("twin images", ""),
    "B": ("twins within test", ""),
    "K": ("unknown commit", ""),
    "E": ("best early", ""),
    "A": ("seeds added", ""),
    "1": ("unlike seeds", ""),
    "Q": ("evened settings", ""),
    "I": ("these test images", ""),
    "R": ("not run", ""),
    "3": ("narrow margin", ""),
}
NAMES = {letter: name for letter, (name, _) in FLAGS.items()}
BLOCKING = {letter: remedy for letter, (_, remedy) in FLAGS.items() if remedy}
OF_ROWS = "NDGVTX4CEAJ"  # letters of rows that count against a verdict on them
# letters of rows that know more than others: the best without them is named, too
FLATTERED = "X4"
FROM_PAPER = "FG"  # of rows with a paper


def said(flag: Flag) -> str:
    """A flag as text: its name and its sentence."""
    return f"{NAMES[flag.letter]}: {flag.sentence}"


def letters(flags: Iterable[Flag], among: Iterable[str] = tuple(NAMES)) -> str:
    """The letters of flags, those first that may block a verdict."""
    present = {flag.letter for flag in flags}
    return "".join(letter for letter in among if letter in present)


@lru_cache(maxsize=1024)
def row_flags(board: Board, row: Row) -> list[Flag]:
    """What a reader must know of a row, gravest first.

    A row without a paper cannot differ from it, and an external row is one set of
    scores: no number of trainings is too few.
    """
    texts = _of_record(row) | _of_trainings(board, row)
    twins, within = comparisons.twins_in_all(board.card), board.card.get("twins", {})
    found = " and ".join(f"{count} {what}" for what, count in within.items() if count)
    texts |= {
        "N": _near_chance(board, row),
        "P": f"{twins} test images have a twin in another split" if twins else "",
        "B": f"{found} of test have a twin within it" if found else "",
        "W": board.card.get("release", {}).get("departs", "").removesuffix("."),
    }
    rsum, ways = row.mean("rsum"), len(board.ways) if row.task == "retrieval" else 1
    most = ways * 100 * len(SUMMED_K)
    if rsum is not None and rsum >= NEARLY * most:  # no published result is as good
        texts["V"] = (
            f"rsum {rsum:.1f} of {most}: make sure that no score knows the pairs"
        )
    without = FROM_PAPER * (not row.has_paper) + "S" * row.is_external
    shown = [letter for letter in NAMES if texts.get(letter) and letter not in without]
    return [Flag(letter, texts[letter], blocks=letter == "N") for letter in shown]


def has_flag(board: Board, row: Row, letter: str) -> bool:
    """Whether a row has the flag of this letter."""
    return any(flag.letter == letter for flag in row_flags(board, row))


def reads_other_words(record: Record) -> bool:
    """Whether a method, or its text encoder, reads word vectors that the paper does not
    have."""
    aspects = (Aspect.WORD_VECTORS, Aspect.TEXT_VECTORS)
    return any(
        each.aspect in aspects and _is_of_features(each) for each in record.departures
    )


def _is_of_features(departure: Departure) -> bool:
    """Vectors of texts count where they come from word vectors; encoders have a flag of
    their own."""
    if departure.aspect != Aspect.TEXT_VECTORS:
        return True
    return departure.reads_words and departure.texts != "contextual"


def _of_record(row: Row) -> dict[str, str]:
    record = row.record
    texts = {}
    if others := _other_features(record):
        texts["F"] = "; ".join(others)
    for departure in record.departures:
        is_random = departure.aspect == Aspect.RANDOM_TEXT_WEIGHTS
        if is_random and departure.texts == "sentence":
            texts["T"] = sentence(departure)
        if departure.aspect == Aspect.TEXT_VECTORS and departure.texts == "contextual":
            texts["G"] = f"{sentence(departure)}, fixed: the paper trains their encoder"
    if other := _other_encoder(row):
        texts["G"] = f"sentence vectors: {other}, in the paper {row.declared.sentence}"
    reads_phrases = any(departure.texts == "phrase" for departure in record.departures)
    if reads_phrases and record.task == "retrieval":
        texts["X"] = "phrases that are annotated in the test captions"
    if record.metrics.get("correction", {}).get("how") == "dual_softmax":
        texts["4"] = "its scores depend on the other test queries; a search has none"
    return texts


def _other_features(record: Record) -> list[str]:
    """Sentences on features of other networks, regions or word vectors than the
    paper's."""
    sentences = []
    for aspects in IN_ORDER:
        for departure in record.departures:
            if departure.aspect in aspects and _is_of_features(departure):
                sentences.append(sentence(departure))
    return sentences


def _other_encoder(row: Row) -> str:
    """Name of the sentence vectors that it read; "" where they are of the paper's
    encoder."""
    folder, own = row.record.text_features.get("encoder", ""), row.declared.sentence
    is_own = not own or not folder or folder.removeprefix("phrases_").startswith(own)
    return "" if is_own else folder


def _of_trainings(board: Board, row: Row) -> dict[str, str]:
    texts = {}
    members = [
        comparisons.known(board, n)
        for n in sorted(comparisons.trainings_of(board, row))
    ]
    histories = [
        o.record.history for member in members if member for o in member.played
    ]
    rose = "still improved at the end"
    early = "were best in the first quarter of their epochs, and fell"
    for letter, tells, what in (("C", is_rising, rose), ("E", is_early, early)):
        known = [told for told in map(tells, histories) if told is not None]
        if any(known) and 2 * sum(known) >= len(known):
            texts[letter] = f"{sum(known)} of {len(known)} trainings {what}"
    fallen = [
        f"seed {seed}: {best:.1f}, begun at {first:.1f}"
        for seed, (best, first) in _from_start(board, row).items()
        if best < first
    ]
    texts["D"] = f"best validation rsum: {'; '.join(fallen)}" if fallen else ""
    alike = []
    if any(outcome.record.starts_alike for outcome in row.played):
        alike.append(STARTS_ALIKE)
    same = [seeds for seeds in _by_result(row).values() if len(seeds) > 1]
    if any(outcome.record.history for outcome in row.played):  # no closed form
        alike += [f"{listed(seeds)} gave identical results" for seeds in same]
    texts["J"] = "; ".join(alike)
    if (count := len(row.played)) < ENOUGH:
        texts["S"] = f"{count} training{'s' * (count != 1)} of {ENOUGH}"
    commits = [facts.git_commit for facts in row.costs]
    if any("unknown" in commit or not commit for commit in commits):
        texts["K"] = "the commit of its code is not known"
    of_seed = {
        o.record.seed: o.trainings[0].git_commit for o in row.played if o.trainings
    }
    added = [
        str(seed) for seed, of in of_seed.items() if of != next(iter(of_seed.values()))
    ]
    if added:
        why = "another commit than the first seed, so maybe trained after results were seen"
        texts["A"] = f"seed{'s' * (len(added) > 1)} {', '.join(added)}: {why}"
    return texts


def _by_result(row: Row) -> dict[tuple, list[int]]:
    """The seeds of a row by their ranks; those whose ranks are not kept are left
    out."""
    seeds: dict[tuple, list[int]] = {}
    for outcome in row.played:
        ranks = outcome.scores.ranks
        if result := tuple((key, ranks[key].values.tobytes()) for key in sorted(ranks)):
            seeds.setdefault(result, []).append(outcome.record.seed)
    return seeds


def is_identical(*rows: Row) -> bool:
    """Whether two rows have the same ranks, to the last one."""
    first, *others = (_by_result(row).keys() for row in rows)
    return bool(first and others) and all(first == other for other in others)


def listed(seeds: Sequence[int]) -> str:
    """Seeds in words: "seeds 0, 1 and 2"."""
    *others, last = map(str, sorted(seeds))
    return f"seeds {', '.join(others)} and {last}" if others else f"seed {last}"


def gain(history: dict[str, list]) -> float | None:
    """How much the validation rsum rose over the last third of the epochs, by a
    straight line, as a share of its best value; None for fewer than two epochs.

    Epochs before the last change of the learning rate are left out where three or more
    follow it: the rise at the change itself says nothing of what comes.
    """
    values_E = np.array(history.get("val_rsum", []), dtype=float)
    count = len(values_E)
    if count < 2 or values_E.max() <= 0:
        return None
    start = max(0, count - max(FEWEST, -(-count // SHARE)))
    changed = np.flatnonzero(np.diff(history.get("learning_rate", np.ones(count)))) + 1
    if len(changed) and count - changed[-1] >= FEWEST:
        start = max(start, changed[-1])
    last_E = values_E[start:]
    slope = np.polyfit(np.arange(len(last_E)), last_E, 1)[0]
    return float(slope * (len(last_E) - 1) / values_E.max())


def is_rising(history: dict[str, list]) -> bool | None:
    """Whether the training would have gone on improving; None: it has too few epochs to
    tell."""
    rise = gain(history)
    return None if rise is None else rise > TOLERANCE


def is_early(history: dict[str, list]) -> bool | None:
    """Whether the best epoch lies in the first quarter and validation fell afterwards,
    as where the rate is too high or the model over-fits; None: it has too few epochs to
    tell."""
    values_E = np.array(history.get("val_rsum", []), dtype=float)
    if len(values_E) < QUARTER or values_E.max() <= 0:
        return None
    is_in_quarter = QUARTER * (values_E.argmax() + 1) <= len(values_E)
    return bool(is_in_quarter and values_E[-1] < (1 - TOLERANCE) * values_E.max())


def _from_start(board: Board, row: Row) -> dict[int, tuple[float, float]]:
    """The best validation rsum of each training, and that of what it goes on from, by
    seed."""
    start = comparisons.known(board, row.declared.start) if row.declared.start else None
    if start is None:
        return {}
    histories = [
        {o.record.seed: o.record.history for o in of.played} for of in (row, start)
    ]
    after, before = (
        {s: of[s]["val_rsum"] for s in of if "val_rsum" in of[s]} for of in histories
    )
    seeds = sorted(after.keys() & before.keys())
    return {seed: (max(after[seed]), max(before[seed])) for seed in seeds}


def _near_chance(board: Board, row: Row) -> str:
    """Of random scores 1, 5 and 10 of N images are ranked that high, in both
    directions."""
    rsum, ways = row.mean("rsum"), len(board.ways)
    if row.task != "retrieval" or not row.played or rsum is None:
        return ""
    images = board.card["counts"]["test"]["images"]
    if board.asked:  # by a layer
        (layer, *_) = board.asked.values()
        images *= len(layer.queries) / int(layer.counts.sum())
    elif ways == 1:  # only datasets that search one way have groups of images
        images = choices_of(board.groups.of_image)
    of_mean, ends = (
        near_chance(rsum, ways, images),
        comparisons.interval(board, row, "rsum"),
    )
    if of_mean or not ends or not near_chance(ends[0], ways, images):
        return of_mean
    below = f"reaches below {NEAR_CHANCE} times random scores"
    return f"the interval of rsum, {ends[0]:.1f} to {ends[1]:.1f}, {below}"


def choices_of(group_of_image: np.ndarray) -> float:
    """How many images there are for each relevant one, over captions that search them:
    all, or fewer where several images of a group are relevant."""
    sizes = np.bincount(group_of_image)
    return float(sizes.sum() ** 2 / np.square(sizes).sum())


def chance(ways: int, images: float) -> float:
    """The rsum of random scores, with these directions and so many images for each
    relevant one."""
    return ways * 100 * sum(min(k, images) for k in SUMMED_K) / images


def near_chance(rsum: float, ways: int, images: float) -> str:
    """What is said of an rsum that is near that of random scores, with these directions
    and so many images for each that is relevant; "" of a better one. Of few images many
    are right by chance: there, the rsum must only be nearer to perfect scores than to
    random ones."""
    by_chance = chance(ways, images)
    half_way = (by_chance + ways * 100 * len(SUMMED_K)) / 2
    is_near = rsum < min(NEAR_CHANCE * by_chance, half_way)
    than = f"{NEAR_CHANCE} times the {by_chance:.1f} of random scores"
    return f"rsum {rsum:.1f} is less than {than}" if is_near else ""


def time_settings(row: Row) -> list[str]:
    """Machine, how its processor computes, device, threads and versions, of all
    trainings and scorings, and how many stages ran at once; several where seeds were
    run on different ones: their times cannot be compared."""
    texts = set()
    for outcome in row.played:
        fingerprint = outcome.record.numerics.get("fingerprint", "unknown")
        for facts in (*outcome.trainings, outcome.scoring):
            on_cpu = f"threads: {facts.threads}, fingerprint {fingerprint}"
            device = on_cpu if facts.device == "cpu" else facts.device
            beside = f", {facts.jobs}{BESIDE}" if (facts.jobs or 1) > 1 else ""
            version = facts.packages.get("torch", "unknown")
            texts.add(f"{facts.machine}, {device}{beside}, torch {version}")
    return sorted(texts)


def settings_of(board: Board) -> list[str]:
    """Those in which times of its rows were measured; external rows have none."""
    timed = [row for row in board.rows if not row.is_external]
    return sorted({text for row in timed for text in time_settings(row)})


def not_run(board: Board, claim: Claim, part: Part) -> Flag | None:
    """Why a part of a claim was not run on a board; None where it was."""
    reason = claim.unplayed.removesuffix(".") or _lack(board, claim, part)
    return Flag("R", reason, blocks=True) if reason else None


def _lack(board: Board, claim: Claim, part: Part) -> str:
    rows = [board.row(preset) for preset in part.presets]
    for preset, row in zip(part.presets, rows, strict=True):
        if row is None:
            return f"{title_of(preset)} was not played"
        if not row.played:
            return f"{row.title}: {row.record.status.replace('_', ' ')}: {row.record.reason}"
        if not comparisons.usable(row, part.metric):
            return f"{quantity(part.metric).heading} of {row.title} was not measured"
        for name, wanted in claim.settings.items():
            trained = [
                comparisons.known(board, p)
                for p in comparisons.trainings_of(board, row)
            ]
            options = [of.record.options if of else {} for of in trained]
            found = {
                str(of.get(name, "another")) for of in options if of.get(name) != wanted
            }
            if found:
                return (
                    f"{row.title} was played with {' and '.join(sorted(found))} {name}"
                )
    if claim.weights:
        # A claim about trained weights is not tested with random ones, nor, where one
        # side alone reads word vectors, with vectors that were trained on the captions
        # at hand.
        if random := [row.title for row in rows if has_flag(board, row, "T")]:
            return f"{' and '.join(random)} was played with a random text encoder"
        trained_rows = [row for row in rows if not row.is_own]
        words = [row.title for row in trained_rows if reads_other_words(row.record)]
        if 0 < len(words) < len(rows):
            return f"{' and '.join(words)} was played with other word vectors"
    declared = [row.declared for row in rows]
    if len({row.method for row in rows}) > 1:
        return ""
    # What a paper compares under one method must differ here, too, and be its own.
    if len({of.sentence for of in declared}) > 1:
        for row in rows:
            if other := _other_encoder(row):
                return f"{row.title} was played with {other}"
    networks, in_papers = ({of.network for of in both} for both in (rows, declared))
    if len(in_papers) > 1 and len(networks) == 1 and None not in networks:
        return f"all were played with {networks.pop()}"
    return ""


def obstacle(board: Board, comparison: Comparison, unfair: str = "") -> Flag | None:
    """Why nothing can be concluded from a comparison, whatever its numbers; None: it
    can. `unfair` is what the entry of its claim says."""
    rows = [
        board.row(preset) for preset in (comparison.first, comparison.second) if preset
    ]
    of_times, task = is_time(comparison.metric), rows[0].task
    settings = (
        {text for row in rows for text in time_settings(row)} if of_times else set()
    )
    trained = [] if of_times else rows
    poor = [row.title for row in trained if has_flag(board, row, "N")]
    fallen = [row.title for row in trained if has_flag(board, row, "D")]
    other = [row.title for row in trained if has_flag(board, row, "G")]
    if board.is_small(task):
        said = (
            "L",
            f"nothing can be concluded from {board.test_queries(task)} test queries",
        )
    elif comparison.difference == 0 and is_identical(*rows):
        said = "M", "identical results"
    elif any(BESIDE in text for text in settings):
        said = "Y", "timed beside other stages"
    elif len(settings) > 1:
        said = (
            "Y",
            f"timed in {len(settings)} settings, of machine, threads or versions",
        )
    elif poor:
        said = "N", f"{' and '.join(poor)} barely trained"
    elif len(rows) > 1 and fallen:
        said = "D", f"{' and '.join(fallen)} ended worse than fine-tuning began"
    elif unfair:
        said = "U", unfair.removesuffix(".")
    elif len(rows) > 1 and (unequal := _settings(*rows)["U"]):
        said = "U", f"unequal settings: {unequal}"
    elif len(trained) > 1 and (untried := _untried(board, *rows)):
        said = "H", f"{untried} had no trials on validation, its opponent had"
    elif len(trained) > 1 == len(other) and all(row.has_paper for row in trained):
        said = "G", f"{other[0]} has another text encoder than in its paper"
    elif "overlap_s" in sides(comparison.metric) and any(
        map(comparisons.is_coarse, rows)
    ):
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


def claim_flags(
    board: Board, presets: Iterable[str], pairs: Sequence[Pair]
) -> list[Flag]:
    """What of the rows of a claim, then of each comparison, speaks against trusting a
    verdict."""
    rows = [board.row(preset) for preset in presets]
    flags = []
    for letter in OF_ROWS:
        titles = [row.title for row in rows if has_flag(board, row, letter)]
        flags += [Flag(letter, "; ".join(titles))] if titles else []
    for pair in pairs:
        comparison, texts = pair.comparison, {}
        rows = [
            r
            for name in (comparison.first, comparison.second)
            if (r := board.row(name))
        ]
        if len(rows) == 2:
            evened = {"Q": _settings(*rows)["Q"]}
            texts = evened | {"H": _trials(board, *rows), "1": unlike_seeds(*rows)}
        printed = pair.printed or 0.0
        kind = pair.rule.kind
        denied = printed if kind.is_one_sided else abs(printed)
        if kind.denies and denied > pair.margin:
            texts["3"] = "the printed difference is more than a tenth of the level here"
        is_known = comparison.interval is None or comparison.doubt.image_count
        # of times other images make no sense
        if not is_known and not is_time(comparison.metric):
            texts["I"] = "the interval is for other trainings only"
        flags += [Flag(letter, text) for letter, text in texts.items() if text]
    return list(dict.fromkeys(flags))


def unlike_seeds(first: Row, second: Row) -> str:
    """Which seeds are compared, where they are not the same; "" where they are, and of
    external rows, which have none."""
    of = {row.title: [o.record.seed for o in row.played] for row in (first, second)}
    is_alike = len({frozenset(seeds) for seeds in of.values()}) == 1
    if is_alike or first.is_external or second.is_external:
        return ""
    return " against ".join(
        f"{listed(seeds)} of {title}" for title, seeds in of.items()
    )


def _settings(first: Row, second: Row) -> dict[str, str]:
    """Of rows that are trained alike, anew or from another one: U, what a season scales
    to different values; Q, what the paper has different for them, and the season has
    not."""
    kinds = {(row.method, bool(row.declared.start)) for row in (first, second)}
    if len(kinds) > 1 or first.declared.fuse or second.declared.fuse:
        return {"U": "", "Q": ""}
    of, declared = (first.record, second.record), (first.declared, second.declared)
    options, in_paper = ([x.options for x in both] for both in (of, declared))
    scaled = [
        f"{n} {options[0].get(n)} and {options[1].get(n)}"
        for n in unequal(*of, *declared)
    ]
    evened = [
        name
        for name in sorted({*of[0].scaled, *of[1].scaled})
        if options[0].get(name) == options[1].get(name)
        and in_paper[0].get(name) != in_paper[1].get(name)
    ]
    return {"U": ", ".join(scaled), "Q": ", ".join(evened)}


def _tried(board: Board, row: Row) -> list[str]:
    """The options of the trials of a row's method; what they gave holds for all its
    presets."""
    presets = [of.preset for of in board.rows if of.method == row.method]
    return [trial for preset in presets for trial in board.tried.get(preset, ())]


def _untried(board: Board, first: Row, second: Row) -> str:
    """Title of the one of two methods without a trial; "" where both or neither had
    any, and of what has no epochs to be tried."""
    if first.method == second.method:
        return ""
    untried = [row for row in (first, second) if not _tried(board, row)]
    has_epochs = [
        any(outcome.record.history for outcome in row.played) for row in untried
    ]
    return untried[0].title if has_epochs == [True] else ""


def _trials(board: Board, first: Row, second: Row) -> str:
    """How often, and with which options, each of two methods was tried on
    validation, where that differs; of one method's rows, which of them its settings
    were tried on."""
    if first.method == second.method:
        own = [row.title for row in (first, second) if row.preset in board.tried]
        return f"of its method, {own[0]} alone was tried" if len(own) == 1 else ""
    told = {}
    for row in (first, second):
        trials = _tried(board, row)
        names = sorted(
            {word.partition("=")[0] for trial in trials for word in trial.split()}
        )
        told[row.title] = (
            f"{len(trials)} trials ({', '.join(names)})" if trials else "no trials"
        )
    return (
        "; ".join(f"{t}: {of}" for t, of in told.items())
        if len({*told.values()}) > 1
        else ""
    )
