"""The test queries of a dataset as the site reads them: what each preset found, and, where they may
be shown, captions and small pictures."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageOps

from benchmark.analysis.boards import Board, Outcome
from benchmark.commands.site_contents import write_script
from benchmark.core.progress_bars import ProgressBar
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.season.parameters import Params
from datasets import DataError

SIDE = 160  # pixels of a picture
SHOWN = 5  # retrieved items of a query
SPLIT = "test"


def write(params: Params, board: Board, folder: Path, is_public: bool) -> str:
    """data/items/, data/queries/ and pictures/ of a dataset; returns what was written, in a line.

    Of a preset the first seed with a result is shown.
    """
    if not board.retrieval.ranked:
        return f"{board.dataset}: no queries to browse"
    data = prepared_tables.read(board.dataset)
    split, is_shown = data.split(SPLIT), board.card["may_publish"] or not is_public
    pictures = _pictures(params, data, folder / "pictures" / board.dataset) if is_shown else []
    texts = data.captions["text"].iloc[split.caption_rows].tolist() if is_shown else []
    items = {
        "images": data.images["image_id"].iloc[split.image_rows].tolist(),
        "captions": data.captions["caption_id"].iloc[split.caption_rows].tolist(),
        "texts": texts,
        "pictures": pictures,
        "owners": split.image_of_caption.tolist(),
        "groups": split.group_of_image.tolist(),
    }
    write_script(folder / f"data/items/{board.dataset}.js", f"items {board.dataset}", items)
    for standing in board.retrieval.ranked:
        name = f"{board.dataset}/{standing.preset}"
        queries = _queries(standing.played[0], board.ways)
        write_script(folder / f"data/queries/{name}.js", f"queries {name}", queries)
    what = f"{len(pictures)} pictures" if is_shown else "no pictures or captions, as not allowed"
    count = len(board.retrieval.ranked)
    return f"{board.dataset}: {count} preset{'s' * (count != 1)} to browse, {what}"


def _queries(outcome: Outcome, ways: Sequence[str]) -> dict:
    """By direction: the rank of every query, and the first items that were retrieved."""
    retrieved = outcome.arrays("scores/retrieved.npz") if outcome.has_scores else {}
    return {
        way: {
            "ranks": outcome.ranks(way).tolist(),
            "items": retrieved[way][:, :SHOWN].tolist() if way in retrieved else [],
        }
        for way in ways
    } | {"seed": outcome.record.seed}


def _pictures(params: Params, data: Prepared, folder: Path) -> list[str]:
    """Small test pictures in the split's order; none where they are not on this machine."""
    files = data.images["file"].iloc[data.split(SPLIT).image_rows]
    if (files == "").any():
        return []
    folder.mkdir(parents=True)
    names = [f"{number:05d}.jpg" for number in range(len(files))]
    try:
        open_picture = raw_dataset(params, data.folder.name).pictures()
        bar = ProgressBar(files, desc=f"pictures of {data.folder.name}")
        for name, file in zip(names, bar, strict=True):
            _small(open_picture(file)).save(folder / name, quality=80)
    except (DataError, OSError):
        return []
    return names


def _small(picture: Image.Image) -> Image.Image:
    return ImageOps.contain(picture.convert("RGB"), (SIDE, SIDE))
