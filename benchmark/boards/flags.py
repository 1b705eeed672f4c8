"""What a reader must know of a row and of a verdict: one kind of thing, a Flag.

A kind of flag is declared by flag_kind above the function that finds it: its letter,
its name, and what helps where it blocks a verdict. FLAGS lists all kinds. What finds
one gives a sentence without its full stop, or "" where there is no such flag; a bias is
a flag itself, with the side that it favours.

Flags are derived when a report is made: records that are older than a flag get it, too.
Nothing is concluded where a flag blocks. docs/statistics.md has a table of all flags.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from operator import attrgetter

from benchmark.boards import comparisons, row_settings, row_warnings
from benchmark.boards.boards import Board, Row
from benchmark.core.records import Aspect, sentence
from benchmark.papers.printed_tables import Claim, is_time, sides
from benchmark.scoring.metrics import SUMMED_K
from benchmark.season.tuning import Trial
from benchmark.stats.claim_kinds import Side
from benchmark.stats.comparisons import Comparison
from benchmark.stats.verdicts import NOTHING_VARIES, Flag, Verdict

ENOUGH = 3  # trainings
NEARLY = 0.98  # of the largest rsum


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A comparison of rows of a board, to be looked at for flags."""

    board: Board
    comparison: Comparison
    claim: Claim | None = None  # None: it is of none
    verdict: Verdict | None = None  # None: not judged yet

    @cached_property
    def rows(self) -> list[Row]:
        """One or two."""
        presets = (self.comparison.first, self.comparison.second)
        return [self.board.row(preset) for preset in presets if preset]

    @property
    def is_of_two(self) -> bool:
        return len(self.rows) == 2

    @property
    def is_of_times(self) -> bool:
        return is_time(self.comparison.metric)

    @property
    def has_several(self) -> bool:
        """Whether each row has several trainings."""
        return min(count for count in self.comparison.trainings if count) > 1

    def with_flag(self, kind: "FlagKind") -> list[Row]:
        """The rows whose trainings count and have a flag; none of times."""
        rows = [] if self.is_of_times else self.rows
        return [row for row in rows if has_flag(self.board, row, kind)]

    def favoured_against(self, weak: Sequence[Row]) -> Side:
        """The side that is favoured where some rows are worse than they could be."""
        if not self.is_of_two or len(weak) != 1:
            return Side.UNKNOWN
        return Side.SECOND if weak[0] is self.rows[0] else Side.FIRST


@dataclass(frozen=True, kw_only=True, eq=False)
class FlagKind:
    """A kind of flag, and what finds it."""

    letter: str
    name: str
    # what helps where it blocks a verdict; "": it blocks none
    remedy: str = ""
    of_row: Callable[[Board, Row], str] | None = None
    # why nothing can be concluded from a comparison, whatever its numbers
    obstacle: Callable[[Compared], str] | None = None
    # what favours a side of a comparison, or may
    bias: Callable[[Compared], Flag | None] | None = None
    # what speaks against trusting a verdict on a comparison
    caution: Callable[[Compared], str] | None = None
    # the rows that nothing is concluded against, where it blocks, and not any row
    against: str = ""
    # whether no test here can decide what it stands in the way of
    is_out_of_reach: bool = False
    warns: bool = True  # whether it counts against a verdict on a row that has it
    # whether a row knows more than others: the best without such a flag is named, too
    flatters: bool = False

    def flag(self, sentence: str, favours: Side | None = None) -> Flag:
        """A flag of this kind; `sentence` has no full stop."""
        return Flag(
            letter=self.letter,
            sentence=sentence,
            favours=favours,
            remedy=self.remedy,
            is_out_of_reach=self.is_out_of_reach,
        )


def flag_kind(
    letter: str, name: str, by: str = "of_row", **facts: object
) -> Callable[[Callable], FlagKind]:
    """Declare the kind that the function below finds, in its field `by`; the function's
    name becomes that of the kind."""

    def declared(finds: Callable) -> FlagKind:
        return FlagKind(letter=letter, name=name, **{by: finds}, **facts)

    return declared


# On rows, gravest first ---------------------------------------------------------------


def _barely_trained(compared: Compared) -> Flag | None:
    poor = compared.with_flag(near_chance)
    because = f"{titles_of(poor)} barely trained"
    return near_chance.flag(because, compared.favoured_against(poor)) if poor else None


@flag_kind(
    "N",
    "near chance",
    remedy="a row above chance",
    bias=_barely_trained,
)
def near_chance(board: Board, row: Row) -> str:
    """The R@K of random scores is K / N each way, with N items for a right one."""
    rsum, ways = row.mean("rsum"), len(board.ways)
    if row.task != "retrieval" or not row.played or rsum is None:
        return ""
    images = board.card["counts"]["test"]["images"]
    if board.layer:
        pairs = next(iter(board.layer.values()))
        images = pairs.said.shape[1]  # captions, if images are the queries
        images *= len(pairs.queries) / int(pairs.counts.sum())
    elif ways == 1:  # only datasets that search one way have groups of images
        images = row_warnings.choices_of(board.groups.of_image)
    if text := row_warnings.near_chance(rsum, ways, images):
        return text
    ends = comparisons.interval(board, row, "rsum")
    if not ends or not row_warnings.is_near_chance(ends[0], ways, images):
        return ""
    below = f"reaches below {row_warnings.TIMES} times random scores"
    return f"the interval of rsum, {ends[0]:.1f} to {ends[1]:.1f}, {below}"


def _fine_tuning_lost(compared: Compared) -> str:
    fallen = compared.with_flag(below_its_start)
    if not compared.is_of_two or not fallen:
        return ""
    return f"{titles_of(fallen)} ended worse than fine-tuning began"


@flag_kind(
    "D",
    "below its start",
    remedy="fine-tuning that improves on its start",
    obstacle=_fine_tuning_lost,
    is_out_of_reach=True,
)
def below_its_start(board: Board, row: Row) -> str:
    """The best validation rsum of each training with a start, and of the start."""
    if not row.declared.start:
        return ""
    start = comparisons.row_of_any_task(board, row.declared.start)
    before = start.validation if start else {}
    fallen = []
    for seed, best in sorted(row.validation.items()):
        if seed in before and best < before[seed]:
            ends = f"{best:.1f}, begun at {before[seed]:.1f}"
            fallen.append(f"seed {seed}: {ends}")
    return f"best validation rsum: {'; '.join(fallen)}" if fallen else ""


def _spread_unknown(compared: Compared) -> str:
    if not compared.comparison.is_of_these_trainings or compared.has_several:
        return ""
    if compared.is_of_times:
        return "timed once, maybe beside other work"
    return "1 seed, and no other preset tells how far trainings lie apart"


@flag_kind(
    "S",
    f"fewer than {ENOUGH} seeds",
    remedy=f"{ENOUGH} seeds",
    warns=False,
    obstacle=_spread_unknown,
)
def few_seeds(board: Board, row: Row) -> str:
    """An external row is one set of scores: no number of trainings is too few."""
    count = len(row.played)
    if count >= ENOUGH or row.is_external:
        return ""
    trainings = "1 training" if count == 1 else f"{count} trainings"
    return f"{trainings} of {ENOUGH}"


def _one_has_another_encoder(compared: Compared) -> str:
    other = compared.with_flag(other_text_encoder)
    if not compared.is_of_two or len(other) != 1:
        return ""
    if not all(row.has_paper for row in compared.rows):
        return ""
    return f"{other[0].title} has another text encoder than in its paper"


@flag_kind(
    "G",
    "other text encoder",
    remedy="the paper's text encoder",
    against="rows with the paper's text encoder",
    obstacle=_one_has_another_encoder,
    is_out_of_reach=True,
)
def other_text_encoder(board: Board, row: Row) -> str:
    if not row.has_paper:
        return ""
    if other := row_settings.other_encoder(row):
        return f"sentence vectors: {other}, in the paper {row.declared.sentence}"
    for departure in row.record.departures:
        if departure.aspect == Aspect.TEXT_VECTORS and departure.texts == "contextual":
            return f"{sentence(departure)}, fixed: the paper trains their encoder"
    return ""


# On comparisons -----------------------------------------------------------------------


@flag_kind("L", "few test queries", by="obstacle", remedy="100 test queries")
def few_queries(compared: Compared) -> str:
    board, task = compared.board, compared.rows[0].task
    few = f"nothing can be concluded from {board.test_queries(task)} test queries"
    return few if board.is_small(task) else ""


@flag_kind("M", "identical results", by="obstacle", remedy="rows that differ")
def identical(compared: Compared) -> str:
    """Where two rows have the same ranks, to the last one."""
    if compared.comparison.difference != 0 or not compared.is_of_two:
        return ""
    first, second = (_by_result(row).keys() for row in compared.rows)
    return "identical results" if first and first == second else ""


@flag_kind("U", "unequal settings", by="bias", remedy="equal settings")
def unequal_settings(compared: Compared) -> Flag | None:
    """An option favours the row that was tried with it, where the other was not."""
    if not compared.is_of_two:
        return None
    favoured = {}  # by unequal setting
    for setting in row_settings.settings_of_pair(*compared.rows).unequal:
        untried = []
        for row in compared.rows:
            trials = compared.board.tried.get(row.preset, ())
            if not any(setting.name in trial.options for trial in trials):
                untried.append(row)
        if untried:
            favoured[str(setting)] = compared.favoured_against(untried)
    side = Side.of_all(favoured.values())
    because = f"the rows have {', '.join(favoured)}"
    return unequal_settings.flag(because, side) if favoured else None


def _one_was_tried(compared: Compared) -> Flag | None:
    if not compared.is_of_two or compared.is_of_times:
        return None
    first, second = compared.rows
    return _unsuited(compared) if first.method == second.method else _untried(compared)


def _untried(compared: Compared) -> Flag | None:
    """One of two methods had no trial."""
    board = compared.board
    untried = [row for row in compared.rows if not _trials_of_method(board, row)]
    if len(untried) != 1:
        return None
    because = f"{untried[0].title} had no trials on validation, its opponent had"
    return unlike_trials.flag(because, compared.favoured_against(untried))


def _unsuited(compared: Compared) -> Flag | None:
    """One of two rows of a method had trials, whose settings do not suit the other."""
    untried = [row for row in compared.rows if row.preset not in compared.board.tried]
    if len(untried) != 1 or not has_flag(compared.board, untried[0], best_early):
        return None
    settings = "at settings that were tried on its opponent alone"
    because = f"{untried[0].title} was best early, {settings}"
    return unlike_trials.flag(because, compared.favoured_against(untried))


@flag_kind(
    "H", "unlike trials", by="caution", remedy="equal trials", bias=_one_was_tried
)
def unlike_trials(compared: Compared) -> str:
    """How often, and with which options, each of two methods was tried on validation;
    of one method's rows, which of them its settings were tried on."""
    if not compared.is_of_two or _one_was_tried(compared):
        return ""
    board, (first, second) = compared.board, compared.rows
    if first.method == second.method:
        own = [row.title for row in (first, second) if row.preset in board.tried]
        return f"of its method, {own[0]} alone was tried" if len(own) == 1 else ""
    texts = [_trials_text(board, row) for row in compared.rows]
    if texts[0] == texts[1]:
        return ""
    return f"{first.title}: {texts[0]}; {second.title}: {texts[1]}"


def _trials_text(board: Board, row: Row) -> str:
    trials = _trials_of_method(board, row)
    if not trials:
        return "no trials"
    names = sorted({*chain.from_iterable(trial.options for trial in trials)})
    count = "1 trial" if len(trials) == 1 else f"{len(trials)} trials"
    return f"{count} ({', '.join(names)})"


def _trials_of_method(board: Board, row: Row) -> list[Trial]:
    """The trials of all presets of a row's method: what they gave holds for each."""
    alike = [other.preset for other in board.rows if other.method == row.method]
    return list(chain.from_iterable(board.tried.get(preset, ()) for preset in alike))


@flag_kind("Y", "unlike machines", by="obstacle", remedy="times of one idle machine")
def unlike_machines(compared: Compared) -> str:
    timed = compared.rows if compared.is_of_times else ()
    settings = {*chain.from_iterable(map(row_settings.time_settings, timed))}
    if any(setting.stages_at_once > 1 for setting in settings):
        return "timed beside other stages"
    if len(settings) > 1:
        return f"timed in {len(settings)} settings, of machine, threads or versions"
    return ""


@flag_kind("Z", "coarse bins", by="obstacle", remedy="S of more scores")
def coarse_bins(compared: Compared) -> str:
    if "overlap_s" not in sides(compared.comparison.metric):
        return ""
    coarse = [row for row in compared.rows if comparisons.is_coarse(row)]
    return f"S of {titles_of(coarse)} depends on its bins" if coarse else ""


@flag_kind(
    NOTHING_VARIES.letter, "no spread", by="obstacle", remedy=NOTHING_VARIES.remedy
)
def no_spread(compared: Compared) -> str:
    is_known = not compared.comparison.is_of_these_trainings
    return NOTHING_VARIES.sentence if compared.has_several and not is_known else ""


@flag_kind(
    "2",
    "out of reach",
    by="obstacle",
    remedy="what this project lacks",
    is_out_of_reach=True,
)
def beyond_reach(compared: Compared) -> str:
    claim = compared.claim
    return claim.out_of_reach.removesuffix(".") if claim else ""


# On rows, those that block nothing ----------------------------------------------------


@flag_kind("V", "nearly perfect")
def nearly_perfect(board: Board, row: Row) -> str:
    """No published result is as good."""
    ways = len(board.ways) if row.task == "retrieval" else 1
    rsum, most = row.mean("rsum") or 0.0, ways * 100 * len(SUMMED_K)
    warning = f"rsum {rsum:.1f} of {most}: make sure that no score knows the pairs"
    return warning if rsum >= NEARLY * most else ""


@flag_kind("T", "random text encoder")
def random_text_encoder(board: Board, row: Row) -> str:
    for departure in row.record.departures:
        is_random = departure.aspect == Aspect.RANDOM_TEXT_WEIGHTS
        if is_random and departure.texts == "sentence":
            return sentence(departure)
    return ""


@flag_kind("X", "extra input", flatters=True)
def extra_input(board: Board, row: Row) -> str:
    texts = [departure.texts for departure in row.record.departures]
    is_there = "phrase" in texts and row.record.task == "retrieval"
    return "phrases that are annotated in the test captions" if is_there else ""


@flag_kind("5", "encoder trained on the captions", flatters=True)
def captions_seen(board: Board, row: Row) -> str:
    """Such an encoder has seen no image, but which captions belong to the same one."""
    seen = row_settings.captions_seen(board, row)
    if seen is None:
        return ""
    encoder, corpus = seen.encoder, seen.corpus
    if corpus not in (board.dataset, board.card.get("reader")):
        corpus = f"{corpus}, which has the captions of {board.title}"
    return (
        f"{encoder.weights} was trained on {corpus} ({encoder.source}), so it has very "
        "probably read those of test; how much this helps is not known"
    )


@flag_kind("4", "other test queries", flatters=True)
def other_queries(board: Board, row: Row) -> str:
    how = row.record.metrics.get("correction", {}).get("how")
    depends = "its scores depend on the other test queries; a search has none"
    return depends if how == "dual_softmax" else ""


@flag_kind("7", "brought from elsewhere")
def brought(board: Board, row: Row) -> str:
    is_unknown = "its training data and the choice of its settings are not known here"
    return is_unknown if row.is_external else ""


@flag_kind("W", "other release of the data", warns=False)
def other_release(board: Board, row: Row) -> str:
    return board.card.get("release", {}).get("departs", "").removesuffix(".")


def _most_trainings(
    board: Board, row: Row, shows: Callable[[dict], bool | None], what: str
) -> str:
    """How many trainings, of a fusion of its members, show something, where at least
    half do that can."""
    shown = []
    for name in comparisons.trainings_of(board, row):
        member = comparisons.row_of_any_task(board, name)
        played = member.played if member else ()
        answers = [shows(outcome.record.history) for outcome in played]
        shown += [answer for answer in answers if answer is not None]
    if not any(shown) or 2 * sum(shown) < len(shown):
        return ""
    return f"{sum(shown)} of {len(shown)} trainings {what}"


@flag_kind("C", "not converged")
def not_converged(board: Board, row: Row) -> str:
    what = "still improved at the end"
    return _most_trainings(board, row, row_warnings.is_rising, what)


@flag_kind("J", "seeds alike")
def seeds_alike(board: Board, row: Row) -> str:
    sentences = []
    if any(outcome.record.starts_alike for outcome in row.played):
        alike = "every training starts from the same weights"
        sentences.append(f"the method sets a seed itself, so that {alike}")
    if any(outcome.record.history for outcome in row.played):  # no closed form
        for seeds in _by_result(row).values():
            if len(seeds) > 1:
                sentences.append(f"{listed(seeds)} gave identical results")
    return "; ".join(sentences)


OF_FEATURES = {  # of what departs: where the flag of features lists it
    Aspect.IMAGE_NETWORK: 1,
    Aspect.IMAGES_STANDARDISED: 1,
    Aspect.GRID_REGIONS: 2,
    Aspect.PROPOSALS: 3,
    Aspect.WORD_VECTORS: 4,
    Aspect.TEXT_VECTORS: 5,
}


@flag_kind("F", "other features", warns=False)
def other_features(board: Board, row: Row) -> str:
    """Features of other networks, regions or word vectors than the paper's."""
    if not row.has_paper:
        return ""
    departures = filter(row_settings.is_of_features, row.record.departures)
    listed = [each for each in departures if each.aspect in OF_FEATURES]
    listed.sort(key=lambda departure: OF_FEATURES[departure.aspect])
    return "; ".join(map(sentence, listed))


@flag_kind("P", "twin images", warns=False)
def twin_images(board: Board, row: Row) -> str:
    count = row_warnings.twins_in_all(board.card)
    return f"{count} test images have a twin in another split" if count else ""


@flag_kind("B", "twins within test", warns=False)
def twins_within(board: Board, row: Row) -> str:
    counts = board.card.get("twins", {})
    parts = [f"{count} {items}" for items, count in counts.items() if count]
    return f"{' and '.join(parts)} of test have a twin within it" if parts else ""


@flag_kind("K", "unknown commit", warns=False)
def unknown_commit(board: Board, row: Row) -> str:
    commits = [costs.git_commit for costs in row.costs]
    is_unknown = any("unknown" in (commit or "unknown") for commit in commits)
    return "the commit of its code is not known" if is_unknown else ""


@flag_kind("E", "best early")
def best_early(board: Board, row: Row) -> str:
    what = "were best in the first quarter of their epochs, and fell"
    return _most_trainings(board, row, row_warnings.is_early, what)


@flag_kind("A", "seeds added")
def seeds_added(board: Board, row: Row) -> str:
    trained = [outcome for outcome in row.played if outcome.trainings]
    added = []
    for outcome in trained:
        first = trained[0].trainings[0].git_commit
        if outcome.trainings[0].git_commit != first:
            added.append(str(outcome.record.seed))
    seeds = "seeds" if len(added) > 1 else "seed"
    why = "another commit than the first seed, so maybe trained after results were seen"
    return f"{seeds} {', '.join(added)}: {why}" if added else ""


# On comparisons, those that block nothing ---------------------------------------------


@flag_kind("1", "unlike seeds", by="caution")
def unlike_seeds(compared: Compared) -> str:
    """Which seeds are compared, where they differ; external rows have none."""
    if any(row.is_external for row in compared.rows):
        return ""
    sides = {}  # by the seeds of the row
    for row in compared.rows:
        seeds = sorted(outcome.record.seed for outcome in row.played)
        sides[tuple(seeds)] = f"{listed(seeds)} of {row.title}"
    return " against ".join(sides.values()) if len(sides) > 1 else ""


@flag_kind("Q", "evened settings", by="caution")
def evened_settings(compared: Compared) -> str:
    if not compared.is_of_two:
        return ""
    return ", ".join(row_settings.settings_of_pair(*compared.rows).evened)


@flag_kind("I", "these test images", by="caution")
def these_images(compared: Compared) -> str:
    comparison = compared.comparison
    is_of_images = comparison.interval is None or comparison.doubt.image_count
    if is_of_images or compared.is_of_times:  # of times other images make no sense
        return ""
    return "the interval is for other trainings only"


not_run = FlagKind(letter="R", name="not run")  # found by claims.not_run


@flag_kind("3", "narrow margin", by="caution")
def narrow_margin(compared: Compared) -> str:
    printed, rule = compared.verdict.printed or 0.0, compared.verdict.rule
    if not rule.kind.denies or rule.is_within((printed, printed)):
        return ""
    return "the printed difference is more than a tenth of the level here"


@flag_kind("6", "significant, within the margin", by="caution")
def hidden_difference(compared: Compared) -> str:
    """A difference within the margin that is significantly different from zero."""
    interval, rule = compared.verdict.interval, compared.verdict.rule
    if interval is None or not rule.is_within(interval):
        return ""
    is_below = interval[1] < 0 and not rule.kind.is_one_sided  # else it denies a gain
    differs = f"{compared.comparison.names}: the interval does not reach zero"
    return differs if interval[0] > 0 or is_below else ""


# All of them --------------------------------------------------------------------------

FLAGS = (  # in the order of pages: those that may block come first
    near_chance,
    below_its_start,
    few_seeds,
    other_text_encoder,
    few_queries,
    identical,
    unequal_settings,
    unlike_trials,
    unlike_machines,
    coarse_bins,
    no_spread,
    beyond_reach,
    nearly_perfect,
    random_text_encoder,
    extra_input,
    captions_seen,
    other_queries,
    brought,
    other_release,
    not_converged,
    seeds_alike,
    other_features,
    twin_images,
    twins_within,
    unknown_commit,
    best_early,
    seeds_added,
    unlike_seeds,
    evened_settings,
    these_images,
    not_run,
    narrow_margin,
    hidden_difference,
)
OBSTACLES = (  # in the order in which a comparison is looked at: the first one counts
    beyond_reach,
    few_queries,
    identical,
    unlike_machines,
    below_its_start,
    other_text_encoder,
    coarse_bins,
    no_spread,
    few_seeds,
)
BY_LETTER = {kind.letter: kind for kind in FLAGS}
NAMES = {kind.letter: kind.name for kind in FLAGS}
BLOCKING = {kind.letter: kind.remedy for kind in FLAGS if kind.remedy}
FLATTERING = [kind.name for kind in FLAGS if kind.flatters]


def said(flag: Flag) -> str:
    return f"{NAMES[flag.letter]}: {flag.sentence}"


def letters(flags: Iterable[Flag]) -> str:
    """The letters of flags, in the order of pages."""
    present = {flag.letter for flag in flags}
    return "".join(letter for letter in NAMES if letter in present)


def row_flags(board: Board, row: Row) -> list[Flag]:
    """What a reader must know of a row, gravest first."""
    sentences = [(kind, _of_row(board, row, kind)) for kind in FLAGS]
    return [kind.flag(text) for kind, text in sentences if text]


def has_flag(board: Board, row: Row, kind: FlagKind) -> bool:
    return _of_row(board, row, kind) != ""


@lru_cache(maxsize=8192)
def _of_row(board: Board, row: Row, kind: FlagKind) -> str:
    return kind.of_row(board, row) if kind.of_row else ""


def obstacle(compared: Compared) -> Flag | None:
    """Why nothing can be concluded from a comparison; None: it can."""
    for kind in OBSTACLES:
        if text := kind.obstacle(compared):
            return kind.flag(text)
    return None


def biases(compared: Compared) -> tuple[Flag, ...]:
    """What favours a side, or may: what the entry of its claim says comes first."""
    flags = [kind.bias(compared) for kind in FLAGS if kind.bias]
    declared = compared.claim.bias if compared.claim else None
    if declared:
        because = declared.because.removesuffix(".")
        flags.insert(0, unequal_settings.flag(because, declared.favours))
    return tuple(filter(None, flags))


def claim_flags(
    board: Board, presets: Iterable[str], verdicts: Sequence[Verdict]
) -> list[Flag]:
    """What of a claim's rows, then of each comparison, speaks against trusting it. What
    blocks a comparison, or favours a side of it, names the rows itself."""
    rows = [board.row(preset) for preset in presets]
    named = set()
    for verdict in verdicts:
        named |= {flag.letter for flag in (*verdict.biases, verdict.blocked) if flag}
    flags = []
    for kind in FLAGS:
        if not kind.warns or kind.letter in named:
            continue
        titles = [row.title for row in rows if has_flag(board, row, kind)]
        if titles:
            flags.append(kind.flag("; ".join(titles)))
    for verdict in verdicts:
        compared = Compared(board=board, comparison=verdict.comparison, verdict=verdict)
        for kind in filter(attrgetter("caution"), FLAGS):
            if text := kind.caution(compared):
                flags.append(kind.flag(text))
    return list(dict.fromkeys(flags))


# Rows ---------------------------------------------------------------------------------


def _by_result(row: Row) -> dict[tuple, list[int]]:
    """The seeds of a row by their ranks, as far as these are kept."""
    seeds: dict[tuple, list[int]] = {}
    for outcome in row.played:
        ranks = outcome.scores.ranks
        result = tuple((way, ranks[way].values.tobytes()) for way in sorted(ranks))
        if result:
            seeds.setdefault(result, []).append(outcome.record.seed)
    return seeds


def listed(seeds: Sequence[int]) -> str:
    """Seeds in words: "seeds 0, 1 and 2"."""
    *others, last = map(str, sorted(seeds))
    return f"seeds {', '.join(others)} and {last}" if others else f"seed {last}"


def titles_of(rows: Sequence[Row]) -> str:
    return " and ".join(row.title for row in rows)
