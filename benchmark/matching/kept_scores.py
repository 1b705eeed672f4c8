"""Scores of tiles that are kept on the disk, for another pass over them."""

import errno
import os
import tempfile
import weakref
from pathlib import Path

import numpy as np

FOLDER = Path(".scratch")  # beside the project, since /tmp may lie in memory


class ScoresOnDisk:
    """A list of tiles, each with the scores (r, c) of every model, in a file without a name: it
    ends with the process, however that ends. The page cache is not memory of the process.

    A tile is in the list as a whole or not at all: `append` raises OSError where the disk is full.
    """

    def __init__(self) -> None:
        FOLDER.mkdir(exist_ok=True)
        self.shapes: list[list[tuple[int, int]]] = []
        self.starts = [0]
        self.file = tempfile.TemporaryFile(dir=FOLDER, buffering=0)
        weakref.finalize(self, self.file.close)

    def __len__(self) -> int:
        return len(self.shapes)

    def append(self, parts: list[np.ndarray]) -> None:
        """Scores in single precision."""
        self.file.seek(self.starts[-1])
        for scores in parts:
            values = np.ascontiguousarray(scores, np.float32)
            if self.file.write(values) < values.nbytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.starts.append(self.file.tell())
        self.shapes.append([scores.shape for scores in parts])

    def __getitem__(self, place: int) -> list[np.ndarray]:
        self.file.seek(self.starts[place])
        return [
            np.fromfile(self.file, np.float32, rows * columns).reshape(rows, columns)
            for rows, columns in self.shapes[place]
        ]
