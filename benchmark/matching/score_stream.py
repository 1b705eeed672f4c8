"""Scores of a split, tile by tile: of one model, or of several as one score.

Tiles are cut along a grid that never changes, so that the bits of a score do not depend on the
memory that is allowed. For the next pass, scores that fit into that memory stay in it, others are
written to the disk, and what the disk has no room for is computed again. As in scoring.py, a method
is given the items in an order drawn at random.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from pydantic import NonNegativeFloat, TypeAdapter, ValidationError

from benchmark.core import disk_space
from benchmark.core.devices import now
from benchmark.core.errors import UserError
from benchmark.core.progress_bars import ProgressBar
from benchmark.matching import tile_workers
from benchmark.matching.kept_scores import FOLDER, ScoresOnDisk
from benchmark.matching.scoring import Encoded
from benchmark.protocol.score_tiles import Tile, spans

IMAGE_TILE, CAPTION_TILE = 512, 1024
BYTES = 4  # of a score
MEMORY = "REMATCH_MEMORY"  # of the machine: MB of scores in memory, beside the encodings
DEFAULT_MEMORY = 512.0

Place = tuple[slice, slice]  # rows and columns of a tile
Scorer = Callable[[Place], tuple[list[np.ndarray], list[float]]]  # -> scores, seconds of models
Fuse = Callable[..., dict[str, np.ndarray]]  # scores (r, c), rows, columns -> fused


def allowed_memory() -> float:
    """MB, of the environment. Raises UserError for what is no number, 0 or more."""
    given = os.environ.get(MEMORY, DEFAULT_MEMORY)
    try:
        return TypeAdapter(NonNegativeFloat).validate_python(given)
    except ValidationError as error:
        raise UserError(MEMORY, "megabytes, 0 or more", repr(given), "correct it") from error


class ScoreStream:
    """Tiles (protocol/score_tiles.py) of one or more scores, of one or more models, which `fuse`
    makes one. They can be passed `passes` times, or more often at some cost. During the first pass
    `lookers` are called with each score's number and its tile."""

    def __init__(
        self,
        members: Sequence[Encoded],
        fuse: Fuse,
        memory: float | None = None,
        passes: int = 2,
    ) -> None:
        self.members, self.fuse = members, fuse
        self.lookers: list[Callable[[int, Tile], None]] = []
        allowed = allowed_memory() if memory is None else memory
        self.count = sum(len(member.parts) for member in members)  # of scores
        size = BYTES * members[0].size * self.count
        fits, has_room = size <= allowed * 1e6, size < disk_space.free_below(FOLDER) / 2
        self.keeps = passes > 1 and (fits or has_room)
        self.kept = ScoresOnDisk() if self.keeps and not fits else []
        self.workers = tile_workers.allowed_workers()
        self.is_first = True

    def __iter__(self) -> Iterator[Tile]:
        for parts, rows, columns in self._parts():
            yield Tile(rows, columns, self.fuse(parts, rows=rows, columns=columns))

    def survey(self) -> None:
        """The first pass, for those who look alone."""
        for _ in self._parts():
            pass

    def _parts(self) -> Iterator[tuple[list[np.ndarray], np.ndarray, np.ndarray]]:
        """The scores (r, c), their images (r,) and captions (c,)."""
        first, grid = self.members[0], self._grid()
        bar = ProgressBar(grid, desc="score", unit="tile", leave=False)
        for (rows, columns), parts in zip(bar, self._scores_of(grid), strict=True):
            images, captions = first.image_order[rows], first.caption_order[columns]
            for number, scores in enumerate(parts if self.is_first else ()):
                for look in self.lookers:
                    look(number, Tile(images, captions, {"i2t": scores}))
            yield parts, images, captions
        self.is_first = False

    def _scores_of(self, grid: list[Place]) -> Iterator[list[np.ndarray]]:
        """The scores (r, c) of every tile: those that are kept, then the others."""
        yield from (self.kept[place] for place in range(len(self.kept)))
        rest = grid[len(self.kept) :]
        if not rest:
            return
        for parts, seconds in tile_workers.results_in_order(self._scorers(len(rest)), rest):
            if self.keeps:
                self._keep(parts)
            if self.is_first:
                self._count(seconds)
            yield parts

    def _scorers(self, tiles: int) -> list[Scorer]:
        """What each worker computes a tile with: the models, on its device."""
        workers, first = min(self.workers, tiles), self.members[0].device
        places = tile_workers.devices_of(workers, first)
        scorers = {}
        for device in dict.fromkeys(places):
            members = [member.on(device) for member in self.members]
            scorers[device] = tile_workers.cast_as_here(partial(_scored, members), device)
        return [scorers[device] for device in places]

    def _count(self, seconds: list[float]) -> None:
        """Add what a tile took of each model, of all workers together."""
        for member, spent in zip(self.members, seconds, strict=True):
            member.seconds["per_pair"] = member.seconds.get("per_pair", 0.0) + spent / member.size

    def _keep(self, parts: list[np.ndarray]) -> None:
        try:
            self.kept.append(parts)
        except OSError:  # another process has filled the disk
            self.keeps = False

    def _grid(self) -> list[Place]:
        captions = spans(len(self.members[0].caption_order), CAPTION_TILE)
        images = spans(len(self.members[0].image_order), IMAGE_TILE)
        return [(rows, columns) for rows in images for columns in captions]


def _scored(members: list[Encoded], tile: Place) -> tuple[list[np.ndarray], list[float]]:
    """All scores (r, c), and the seconds that each model took."""
    parts, seconds = [], []
    for member in members:
        started = now(member.device)
        parts += member.scores(*tile)
        seconds.append(now(member.device) - started)
    return parts, seconds
