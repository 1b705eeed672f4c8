"""What a reader must know of a row and of a verdict: one kind of thing, a Flag.

A FlagKind declares everything about a flag: its letter, its name, what finds it on a
row or on a comparison, and what helps where it blocks a verdict. FLAGS lists the kinds
in the order in which pages show them.

Flags are derived when a report is made: records that are older than a flag get it, too.
Nothing is concluded where a flag blocks. docs/statistics.md has a table of all flags.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from itertools import chain

from benchmark.boards import comparisons, row_settings, row_warnings
from benchmark.boards.boards import Board, Row
from benchmark.boards.row_warnings import is_near_chance, near_chance
from benchmark.core.records import Aspect, sentence
from benchmark.papers.printed_tables import Bias, is_time, sides
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
    rows: list[Row]  # one or two
    comparison: Comparison
    verdict: Verdict | None = None  # None: not judged yet

    @property
    def is_of_times(self) -> bool:
        return is_time(self.comparison.metric)

    @property
    def trained(self) -> list[Row]:
        """The rows whose trainings the comparison rests on: none of times."""
        return [] if self.is_of_times else self.rows

    def with_flag(self, kind: "FlagKind") -> list[Row]:
        return [row for row in self.trained if has_flag(self.board, row, kind)]


@dataclass(frozen=True, eq=False)
class FlagKind:
    """A kind of flag. What finds it, as far as there is such a thing, gives a sentence
    without its full stop, or "" where there is no such flag."""

    letter: str
    name: str
    _: KW_ONLY
    # what helps where it blocks a verdict; "": it blocks none
    remedy: str = ""
    of_row: Callable[[Board, Row], str] | None = None
    # the rows that nothing is concluded against; "": it only warns
    no_verdict_against: str = ""
    # why nothing can be concluded from a comparison, whatever its numbers
    obstacle: Callable[[Compared], str] | None = None
    # whether no test here can decide what it stands in the way of
    is_out_of_reach: bool = False
    # what favours a side of a comparison, or may
    bias: Callable[[Compared], Bias | None] | None = None
    # what speaks against trusting a verdict on a comparison
    caution: Callable[[Compared], str] | None = None
    # whether it counts against a verdict on a row that has it
    warns_of_verdicts: bool = False
    # whether a row knows more than others: the best without such a flag is named, too
    flatters: bool = False

    def flag(
        self, sentence: str, *, blocks: bool = False, favours: Side | None = None
    ) -> Flag:
        """A flag of this kind; `sentence` has no full stop."""
        return Flag(
            letter=self.letter,
            sentence=sentence,
            blocks=blocks,
            favours=favours,
            remedy=self.remedy,
            is_out_of_reach=self.is_out_of_reach,
        )


# On rows, gravest first ---------------------------------------------------------------


def _near_chance(board: Board, row: Row) -> str:
    """The R@K of random scores is K / N in each direction, with N items for each right
    one."""
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
    if text := near_chance(rsum, ways, images):
        return text
    ends = comparisons.interval(board, row, "rsum")
    if not ends or not is_near_chance(ends[0], ways, images):
        return ""
    below = f"reaches below {row_warnings.TIMES} times random scores"
    return f"the interval of rsum, {ends[0]:.1f} to {ends[1]:.1f}, {below}"


def _barely_trained(compared: Compared) -> Bias | None:
    poor = compared.with_flag(NEAR_CHANCE)
    if not poor:
        return None
    because = f"{titles_of(poor)} barely trained"
    return Bias(because=because, favours=_favoured_against(compared, poor))


def _favoured_against(compared: Compared, weak: Sequence[Row]) -> Side:
    """The side that is favoured where some rows are worse than they could be."""
    if len(compared.rows) < 2 or len(weak) != 1:
        return Side.UNKNOWN
    return Side.SECOND if weak[0] is compared.rows[0] else Side.FIRST


NEAR_CHANCE = FlagKind(
    "N",
    "near chance",
    remedy="a row above chance",
    of_row=_near_chance,
    no_verdict_against="any row (near chance)",
    bias=_barely_trained,
    warns_of_verdicts=True,
)


def _below_its_start(board: Board, row: Row) -> str:
    """Of each training with a start: its best validation rsum, and that of the
    start."""
    if not row.declared.start:
        return ""
    start = comparisons.row_of_any_task(board, row.declared.start)
    if start is None:
        return ""
    after, before = row.validation, start.validation
    fallen = []
    for seed in sorted(after.keys() & before.keys()):
        if after[seed] < before[seed]:
            ends = f"{after[seed]:.1f}, begun at {before[seed]:.1f}"
            fallen.append(f"seed {seed}: {ends}")
    return f"best validation rsum: {'; '.join(fallen)}" if fallen else ""


def _fine_tuning_lost(compared: Compared) -> str:
    fallen = compared.with_flag(BELOW_ITS_START)
    if len(compared.rows) < 2 or not fallen:
        return ""
    return f"{titles_of(fallen)} ended worse than fine-tuning began"


BELOW_ITS_START = FlagKind(
    "D",
    "below its start",
    remedy="fine-tuning that improves on its start",
    of_row=_below_its_start,
    no_verdict_against="any row (below its start)",
    obstacle=_fine_tuning_lost,
    is_out_of_reach=True,
    warns_of_verdicts=True,
)


def _few_seeds(board: Board, row: Row) -> str:
    """An external row is one set of scores: no number of trainings is too few."""
    count = len(row.played)
    if count >= ENOUGH or row.is_external:
        return ""
    trainings = "1 training" if count == 1 else f"{count} trainings"
    return f"{trainings} of {ENOUGH}"


def _spread_unknown(compared: Compared) -> str:
    comparison = compared.comparison
    if not comparison.is_of_these_trainings or _have_several(comparison):
        return ""
    if compared.is_of_times:
        return "timed once, maybe beside other work"
    return "1 seed, and no other preset tells how far trainings lie apart"


def _have_several(comparison: Comparison) -> bool:
    return min(count for count in comparison.trainings if count) > 1


FEW_SEEDS = FlagKind(
    "S",
    f"fewer than {ENOUGH} seeds",
    remedy=f"{ENOUGH} seeds",
    of_row=_few_seeds,
    no_verdict_against=f"any row (fewer than {ENOUGH} seeds)",
    obstacle=_spread_unknown,
)


def _other_text_encoder(board: Board, row: Row) -> str:
    text = ""
    if not row.has_paper:
        return text
    for departure in row.record.departures:
        if departure.aspect == Aspect.TEXT_VECTORS and departure.texts == "contextual":
            text = f"{sentence(departure)}, fixed: the paper trains their encoder"
    if other := row_settings.other_encoder(row):
        text = f"sentence vectors: {other}, in the paper {row.declared.sentence}"
    return text


def _one_has_another_encoder(compared: Compared) -> str:
    other, trained = compared.with_flag(OTHER_TEXT_ENCODER), compared.trained
    if len(trained) < 2 or len(other) != 1:
        return ""
    if not all(row.has_paper for row in trained):
        return ""
    return f"{other[0].title} has another text encoder than in its paper"


OTHER_TEXT_ENCODER = FlagKind(
    "G",
    "other text encoder",
    remedy="the paper's text encoder",
    of_row=_other_text_encoder,
    no_verdict_against="rows with the paper's text encoder",
    obstacle=_one_has_another_encoder,
    is_out_of_reach=True,
    warns_of_verdicts=True,
)


# On comparisons -----------------------------------------------------------------------


def _few_queries(compared: Compared) -> str:
    board, task = compared.board, compared.rows[0].task
    if not board.is_small(task):
        return ""
    return f"nothing can be concluded from {board.test_queries(task)} test queries"


FEW_QUERIES = FlagKind(
    "L", "few test queries", remedy="100 test queries", obstacle=_few_queries
)


def _identical(compared: Compared) -> str:
    """Where two rows have the same ranks, to the last one."""
    if compared.comparison.difference != 0 or len(compared.rows) < 2:
        return ""
    first, second = (_by_result(row).keys() for row in compared.rows)
    return "identical results" if first and first == second else ""


IDENTICAL = FlagKind(
    "M", "identical results", remedy="rows that differ", obstacle=_identical
)


def _unequal_settings(compared: Compared) -> Bias | None:
    """An option favours the row that was tried with it, where the other was not; where
    both were, each has what its own validation prefers."""
    if len(compared.rows) < 2:
        return None
    unequal, favoured = [], set()
    for setting in row_settings.settings_of_pair(*compared.rows).unequal:
        untried = []
        for row in compared.rows:
            trials = compared.board.tried.get(row.preset, ())
            if not any(setting.name in trial.options for trial in trials):
                untried.append(row)
        if untried:
            unequal.append(str(setting))
            favoured.add(_favoured_against(compared, untried))
    if not unequal:
        return None
    side = favoured.pop() if len(favoured) == 1 else Side.UNKNOWN
    return Bias(because=f"the rows have {', '.join(unequal)}", favours=side)


UNEQUAL_SETTINGS = FlagKind(
    "U", "unequal settings", remedy="equal settings", bias=_unequal_settings
)


def _untried(compared: Compared) -> Bias | None:
    """One of two methods had no trial, and has epochs to be tried."""
    if len(compared.trained) < 2:
        return None
    first, second = compared.rows
    if first.method == second.method:
        return None
    board = compared.board
    untried = [row for row in compared.rows if not _trials_of_method(board, row)]
    if len(untried) != 1:
        return None
    (row,) = untried
    if not any(outcome.record.history for outcome in row.played):
        return None
    because = f"{row.title} had no trials on validation, its opponent had"
    return Bias(because=because, favours=_favoured_against(compared, untried))


def _unlike_trials(compared: Compared) -> str:
    """How often, and with which options, each of two methods was tried on validation,
    where that differs; of one method's rows, which of them its settings were tried
    on."""
    if len(compared.rows) < 2 or _untried(compared):
        return ""
    board, (first, second) = compared.board, compared.rows
    if first.method == second.method:
        own = [row.title for row in (first, second) if row.preset in board.tried]
        return f"of its method, {own[0]} alone was tried" if len(own) == 1 else ""
    trials = {row.title: _trials_text(board, row) for row in (first, second)}
    if len({*trials.values()}) == 1:
        return ""
    return "; ".join(f"{title}: {text}" for title, text in trials.items())


def _trials_text(board: Board, row: Row) -> str:
    """How many, and of which options."""
    trials = _trials_of_method(board, row)
    if not trials:
        return "no trials"
    names = sorted({*chain.from_iterable(trial.options for trial in trials)})
    return f"{len(trials)} trials ({', '.join(names)})"


def _trials_of_method(board: Board, row: Row) -> list[Trial]:
    """The trials of all presets of a row's method: what they gave holds for each."""
    alike = [other.preset for other in board.rows if other.method == row.method]
    return list(chain.from_iterable(board.tried.get(preset, ()) for preset in alike))


UNLIKE_TRIALS = FlagKind(
    "H", "unlike trials", remedy="equal trials", bias=_untried, caution=_unlike_trials
)


def _unlike_machines(compared: Compared) -> str:
    timed = compared.rows if compared.is_of_times else ()
    settings = {*chain.from_iterable(map(row_settings.time_settings, timed))}
    if any(setting.stages_at_once > 1 for setting in settings):
        return "timed beside other stages"
    if len(settings) > 1:
        return f"timed in {len(settings)} settings, of machine, threads or versions"
    return ""


UNLIKE_MACHINES = FlagKind(
    "Y",
    "unlike machines",
    remedy="times of one idle machine",
    obstacle=_unlike_machines,
)


def _coarse_bins(compared: Compared) -> str:
    if "overlap_s" not in sides(compared.comparison.metric):
        return ""
    coarse = [row for row in compared.rows if comparisons.is_coarse(row)]
    return f"S of {titles_of(coarse)} depends on its bins" if coarse else ""


COARSE_BINS = FlagKind(
    "Z", "coarse bins", remedy="S of more scores", obstacle=_coarse_bins
)


def _no_spread(compared: Compared) -> str:
    comparison = compared.comparison
    if not comparison.is_of_these_trainings or not _have_several(comparison):
        return ""
    return NOTHING_VARIES.sentence


NO_SPREAD = FlagKind(
    NOTHING_VARIES.letter,
    "no spread",
    remedy=NOTHING_VARIES.remedy,
    obstacle=_no_spread,
)

BEYOND_REACH = FlagKind(  # found by the entry of a claim
    "2", "out of reach", remedy="what this project lacks", is_out_of_reach=True
)

# On rows, those that block nothing ----------------------------------------------------


def _nearly_perfect(board: Board, row: Row) -> str:
    """No published result is as good."""
    rsum = row.mean("rsum")
    ways = len(board.ways) if row.task == "retrieval" else 1
    most = ways * 100 * len(SUMMED_K)
    if rsum is None or rsum < NEARLY * most:
        return ""
    return f"rsum {rsum:.1f} of {most}: make sure that no score knows the pairs"


NEARLY_PERFECT = FlagKind(
    "V", "nearly perfect", of_row=_nearly_perfect, warns_of_verdicts=True
)


def _random_text_encoder(board: Board, row: Row) -> str:
    for departure in row.record.departures:
        is_random = departure.aspect == Aspect.RANDOM_TEXT_WEIGHTS
        if is_random and departure.texts == "sentence":
            return sentence(departure)
    return ""


RANDOM_TEXT_ENCODER = FlagKind(
    "T", "random text encoder", of_row=_random_text_encoder, warns_of_verdicts=True
)


def _extra_input(board: Board, row: Row) -> str:
    record = row.record
    reads_phrases = any(departure.texts == "phrase" for departure in record.departures)
    if not reads_phrases or record.task != "retrieval":
        return ""
    return "phrases that are annotated in the test captions"


EXTRA_INPUT = FlagKind(
    "X", "extra input", of_row=_extra_input, warns_of_verdicts=True, flatters=True
)


def _captions_seen(board: Board, row: Row) -> str:
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


CAPTIONS_SEEN = FlagKind(
    "5",
    "encoder trained on the captions",
    of_row=_captions_seen,
    warns_of_verdicts=True,
    flatters=True,
)


def _other_queries(board: Board, row: Row) -> str:
    if row.record.metrics.get("correction", {}).get("how") != "dual_softmax":
        return ""
    return "its scores depend on the other test queries; a search has none"


OTHER_QUERIES = FlagKind(
    "4",
    "other test queries",
    of_row=_other_queries,
    warns_of_verdicts=True,
    flatters=True,
)


def _other_release(board: Board, row: Row) -> str:
    return board.card.get("release", {}).get("departs", "").removesuffix(".")


OTHER_RELEASE = FlagKind("W", "other release of the data", of_row=_other_release)


def _most_trainings(
    board: Board, row: Row, shows: Callable[[dict], bool | None], what: str
) -> str:
    """How many trainings, of a fusion those of its members, show something, where at
    least half of those do that can."""
    shown = []
    for name in comparisons.trainings_of(board, row):
        member = comparisons.row_of_any_task(board, name)
        played = member.played if member else ()
        answers = [shows(outcome.record.history) for outcome in played]
        shown += [answer for answer in answers if answer is not None]
    if not any(shown) or 2 * sum(shown) < len(shown):
        return ""
    return f"{sum(shown)} of {len(shown)} trainings {what}"


def _not_converged(board: Board, row: Row) -> str:
    return _most_trainings(
        board, row, row_warnings.is_rising, "still improved at the end"
    )


NOT_CONVERGED = FlagKind(
    "C", "not converged", of_row=_not_converged, warns_of_verdicts=True
)


def _seeds_alike(board: Board, row: Row) -> str:
    sentences = []
    if any(outcome.record.starts_alike for outcome in row.played):
        alike = "every training starts from the same weights"
        sentences.append(f"the method sets a seed itself, so that {alike}")
    if any(outcome.record.history for outcome in row.played):  # no closed form
        for seeds in _by_result(row).values():
            if len(seeds) > 1:
                sentences.append(f"{listed(seeds)} gave identical results")
    return "; ".join(sentences)


SEEDS_ALIKE = FlagKind("J", "seeds alike", of_row=_seeds_alike, warns_of_verdicts=True)

OF_FEATURES = (  # of what departs: how the flag of features lists it
    (Aspect.IMAGE_NETWORK, Aspect.IMAGES_STANDARDISED),
    (Aspect.GRID_REGIONS,),
    (Aspect.PROPOSALS,),
    (Aspect.WORD_VECTORS,),
    (Aspect.TEXT_VECTORS,),
)


def _other_features(board: Board, row: Row) -> str:
    """Features of other networks, regions or word vectors than the paper's."""
    if not row.has_paper:
        return ""
    sentences = []
    for aspects in OF_FEATURES:
        for departure in row.record.departures:
            if departure.aspect in aspects and row_settings.is_of_features(departure):
                sentences.append(sentence(departure))
    return "; ".join(sentences)


OTHER_FEATURES = FlagKind("F", "other features", of_row=_other_features)


def _twin_images(board: Board, row: Row) -> str:
    count = row_warnings.twins_in_all(board.card)
    return f"{count} test images have a twin in another split" if count else ""


TWIN_IMAGES = FlagKind("P", "twin images", of_row=_twin_images)


def _twins_within(board: Board, row: Row) -> str:
    counts = board.card.get("twins", {})
    parts = [f"{count} {items}" for items, count in counts.items() if count]
    return f"{' and '.join(parts)} of test have a twin within it" if parts else ""


TWINS_WITHIN = FlagKind("B", "twins within test", of_row=_twins_within)


def _unknown_commit(board: Board, row: Row) -> str:
    commits = [costs.git_commit for costs in row.costs]
    is_unknown = any("unknown" in commit or not commit for commit in commits)
    return "the commit of its code is not known" if is_unknown else ""


UNKNOWN_COMMIT = FlagKind("K", "unknown commit", of_row=_unknown_commit)


def _best_early(board: Board, row: Row) -> str:
    what = "were best in the first quarter of their epochs, and fell"
    return _most_trainings(board, row, row_warnings.is_early, what)


BEST_EARLY = FlagKind("E", "best early", of_row=_best_early, warns_of_verdicts=True)


def _seeds_added(board: Board, row: Row) -> str:
    trained = [outcome for outcome in row.played if outcome.trainings]
    commits = {each.record.seed: each.trainings[0].git_commit for each in trained}
    first = next(iter(commits.values()), None)
    added = [str(seed) for seed, commit in commits.items() if commit != first]
    if not added:
        return ""
    seeds = "seeds" if len(added) > 1 else "seed"
    why = "another commit than the first seed, so maybe trained after results were seen"
    return f"{seeds} {', '.join(added)}: {why}"


SEEDS_ADDED = FlagKind("A", "seeds added", of_row=_seeds_added, warns_of_verdicts=True)


# On comparisons, those that block nothing ---------------------------------------------


def _unlike_seeds(compared: Compared) -> str:
    """Which seeds are compared, where they are not the same; "" of external rows, which
    have none."""
    if any(row.is_external for row in compared.rows):
        return ""
    seeds = {}
    for row in compared.rows:
        seeds[row.title] = [outcome.record.seed for outcome in row.played]
    if len({*map(frozenset, seeds.values())}) == 1:
        return ""
    sides = [f"{listed(of_row)} of {title}" for title, of_row in seeds.items()]
    return " against ".join(sides)


UNLIKE_SEEDS = FlagKind("1", "unlike seeds", caution=_unlike_seeds)


def _evened_settings(compared: Compared) -> str:
    if len(compared.rows) < 2:
        return ""
    return ", ".join(row_settings.settings_of_pair(*compared.rows).evened)


EVENED_SETTINGS = FlagKind("Q", "evened settings", caution=_evened_settings)


def _these_images(compared: Compared) -> str:
    comparison = compared.comparison
    is_of_images = comparison.interval is None or comparison.doubt.image_count
    if is_of_images or compared.is_of_times:  # of times other images make no sense
        return ""
    return "the interval is for other trainings only"


THESE_IMAGES = FlagKind("I", "these test images", caution=_these_images)
NOT_RUN = FlagKind("R", "not run")  # see claims.not_run


def _narrow_margin(compared: Compared) -> str:
    verdict = compared.verdict
    kind, printed = verdict.rule.kind, verdict.printed or 0.0
    denied = printed if kind.is_one_sided else abs(printed)
    if not kind.denies or denied <= verdict.margin:
        return ""
    return "the printed difference is more than a tenth of the level here"


NARROW_MARGIN = FlagKind("3", "narrow margin", caution=_narrow_margin)


def _hidden_difference(compared: Compared) -> str:
    """A difference within the margin that is significantly different from zero."""
    verdict = compared.verdict
    interval, rule = verdict.interval, verdict.rule
    if interval is None or not rule.is_within(interval):
        return ""
    if interval[0] <= 0 <= interval[1]:
        return ""
    if rule.kind.is_one_sided and interval[1] < 0:  # it denies a gain alone
        return ""
    return f"{verdict.comparison.names}: the interval does not reach zero"


HIDDEN_DIFFERENCE = FlagKind(
    "6", "significant, within the margin", caution=_hidden_difference
)

# All of them --------------------------------------------------------------------------

FLAGS = (  # in the order of pages: those that may block a verdict first
    NEAR_CHANCE,
    BELOW_ITS_START,
    FEW_SEEDS,
    OTHER_TEXT_ENCODER,
    FEW_QUERIES,
    IDENTICAL,
    UNEQUAL_SETTINGS,
    UNLIKE_TRIALS,
    UNLIKE_MACHINES,
    COARSE_BINS,
    NO_SPREAD,
    BEYOND_REACH,
    NEARLY_PERFECT,
    RANDOM_TEXT_ENCODER,
    EXTRA_INPUT,
    CAPTIONS_SEEN,
    OTHER_QUERIES,
    OTHER_RELEASE,
    NOT_CONVERGED,
    SEEDS_ALIKE,
    OTHER_FEATURES,
    TWIN_IMAGES,
    TWINS_WITHIN,
    UNKNOWN_COMMIT,
    BEST_EARLY,
    SEEDS_ADDED,
    UNLIKE_SEEDS,
    EVENED_SETTINGS,
    THESE_IMAGES,
    NOT_RUN,
    NARROW_MARGIN,
    HIDDEN_DIFFERENCE,
)
OBSTACLES = (  # in the order in which a comparison is looked at: the first one counts
    FEW_QUERIES,
    IDENTICAL,
    UNLIKE_MACHINES,
    BELOW_ITS_START,
    OTHER_TEXT_ENCODER,
    COARSE_BINS,
    NO_SPREAD,
    FEW_SEEDS,
)
BIASES = [kind for kind in FLAGS if kind.bias]
WARNINGS = [kind for kind in FLAGS if kind.warns_of_verdicts]
CAUTIONS = [kind for kind in FLAGS if kind.caution]
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
    flags = [_flag_of(board, row, kind) for kind in FLAGS]
    return [flag for flag in flags if flag]


def has_flag(board: Board, row: Row, kind: FlagKind) -> bool:
    return _flag_of(board, row, kind) is not None


@lru_cache(maxsize=8192)
def _flag_of(board: Board, row: Row, kind: FlagKind) -> Flag | None:
    text = kind.of_row(board, row) if kind.of_row else ""
    return kind.flag(text) if text else None


def obstacle(board: Board, comparison: Comparison) -> Flag | None:
    """Why nothing can be concluded from a comparison, whatever its numbers; None: it
    can."""
    compared = _compared(board, comparison)
    for kind in OBSTACLES:
        if text := kind.obstacle(compared):
            return kind.flag(text, blocks=True)
    return None


def biases(
    board: Board, comparison: Comparison, declared: Bias | None = None
) -> tuple[Flag, ...]:
    """What favours a side of a comparison, or may; `declared` is what the entry of its
    claim says."""
    compared = _compared(board, comparison)
    of_kinds = [(kind, kind.bias(compared)) for kind in BIASES]
    flags = []
    for kind, bias in [(UNEQUAL_SETTINGS, declared), *of_kinds]:
        if bias:
            because = bias.because.removesuffix(".")
            flags.append(kind.flag(because, favours=bias.favours))
    return tuple(flags)


def _compared(board: Board, comparison: Comparison) -> Compared:
    presets = (comparison.first, comparison.second)
    rows = [board.row(preset) for preset in presets if preset]
    return Compared(board=board, rows=rows, comparison=comparison)


def claim_flags(
    board: Board, presets: Iterable[str], verdicts: Sequence[Verdict]
) -> list[Flag]:
    """What of the rows of a claim, then of each comparison, speaks against trusting a
    verdict."""
    rows = [board.row(preset) for preset in presets]
    flags = []
    for kind in WARNINGS:
        titles = [row.title for row in rows if has_flag(board, row, kind)]
        if titles:
            flags.append(kind.flag("; ".join(titles)))
    for verdict in verdicts:
        compared = replace(_compared(board, verdict.comparison), verdict=verdict)
        for kind in CAUTIONS:
            if text := kind.caution(compared):
                flags.append(kind.flag(text))
    return list(dict.fromkeys(flags))


# Rows ---------------------------------------------------------------------------------


def _by_result(row: Row) -> dict[tuple, list[int]]:
    """The seeds of a row by their ranks; those whose ranks are not kept are left
    out."""
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
