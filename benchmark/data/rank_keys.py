"""Which ranks are meant: of a direction, by a layer of relevance, in a gallery.

Their names in files are made and read here, and nowhere else: i2t, i2t_fold, t2i@crowd.
"""

from dataclasses import dataclass

OWN = "own"  # the layer of the captions that were written for an image
LAYER = "@"  # between direction and layer
FOLD = "_fold"  # behind a direction: the gallery is a fold of the test split


@dataclass(frozen=True, order=True)
class RankKey:
    """Ranks of all queries of a direction that a layer has a relevant item for."""

    direction: str  # i2t, t2i, s2s or p2r
    layer: str = OWN
    is_of_folds: bool = False  # each query meets the items of its own fold alone

    @property
    def column(self) -> str:
        """The direction, as tables of single queries have it beside the layer."""
        return f"{self.direction}{FOLD}" if self.is_of_folds else self.direction

    @property
    def name(self) -> str:
        """What a file calls these ranks."""
        if self.layer == OWN:
            return self.column
        return f"{self.column}{LAYER}{self.layer}"

    @classmethod
    def read(cls, name: str) -> "RankKey":
        """The key of ranks that a file calls so."""
        column, _, layer = name.partition(LAYER)
        direction = column.removesuffix(FOLD)
        return cls(direction, layer or OWN, is_of_folds=direction != column)


I2T, T2I = RankKey("i2t"), RankKey("t2i")
OWN_KEYS = (  # all of the layer own, in the order in which they are read
    I2T,
    T2I,
    RankKey("i2t", is_of_folds=True),
    RankKey("t2i", is_of_folds=True),
    RankKey("s2s"),
    RankKey("p2r"),
)
