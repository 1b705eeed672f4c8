"""Whether two boards order their rows alike: those of seasons that play the same test pictures with
other features, say. Knows no torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from benchmark.analysis.season_claims import Leader, Measured, Place, SeasonClaims, are_apart

FEWEST = 5  # rows; the order of fewer says little


@dataclass(frozen=True)
class BoardOrder:
    """Of the rows that two boards share, with the same budget."""

    title: str  # of the data
    metric: str  # that ranks
    seasons: tuple[SeasonClaims, SeasonClaims]
    levels: dict[str, tuple[float, float]]  # title of a row -> its mean on each; by the first board
    pairs: int  # that differ on both boards
    turned: list[tuple[str, str]]  # pairs that the second board turns round; the widest turn first
    apart: int  # pairs that a board tells apart
    turned_apart: int  # of these

    @property
    def tau(self) -> float:
        """Kendall's, of these pairs: 1 for the same order, -1 for the opposite one."""
        return 1 - 2 * len(self.turned) / self.pairs


def board_orders(seasons: Sequence[SeasonClaims]) -> list[BoardOrder]:
    """Of every two boards of one task and the same test pictures that share FEWEST rows or more."""
    orders = []
    for pair in combinations(seasons, 2):
        for data in product(*(season.datasets for season in pair)):
            if _test_pictures(data[0]) == _test_pictures(data[1]):
                orders += _orders(pair, data)
    return orders


def _test_pictures(data: Measured) -> tuple[str, str, int]:
    return data.title, data.split, data.images


def _orders(
    seasons: tuple[SeasonClaims, SeasonClaims], data: tuple[Measured, Measured]
) -> list[BoardOrder]:
    """One per task."""
    orders = []
    for boards in product(*(of_season.leaders for of_season in data)):
        shared = _shared(data, boards) if boards[0].task == boards[1].task else []
        if len(shared) >= FEWEST:
            orders.append(_order(seasons, data[0].title, boards[0].metric, shared))
    return [order for order in orders if order.pairs]


def _shared(
    data: tuple[Measured, Measured], boards: tuple[Leader, Leader]
) -> list[tuple[Place, Place]]:
    """The places of every row that has the same budget on both boards, the best of the first board
    first."""
    places = {place.title: place for place in boards[1].places}
    return [
        (place, places[place.title])
        for place in boards[0].places
        if place.title in places and data[0].budgets[place.title] == data[1].budgets[place.title]
    ]


def _order(
    seasons: tuple[SeasonClaims, SeasonClaims],
    title: str,
    metric: str,
    shared: Sequence[tuple[Place, Place]],
) -> BoardOrder:
    turns, pairs, apart, turned_apart = {}, 0, 0, 0
    for better, worse in combinations(shared, 2):
        lead, lag = better[0].mean - worse[0].mean, worse[1].mean - better[1].mean
        if not lead or not lag:
            continue
        pairs += 1
        is_apart = any(are_apart(*of_board) for of_board in zip(better, worse, strict=True))
        apart += is_apart
        if lag > 0:
            turned_apart += is_apart
            turns[better[0].title, worse[0].title] = min(lead, lag)
    return BoardOrder(
        title=title,
        metric=metric,
        seasons=seasons,
        levels={first.title: (first.mean, second.mean) for first, second in shared},
        pairs=pairs,
        turned=sorted(turns, key=turns.get, reverse=True),
        apart=apart,
        turned_apart=turned_apart,
    )
