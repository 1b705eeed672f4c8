"""How far long work is: a bar on a terminal; elsewhere a line every 15 s, with the time left."""

import io
import sys

from tqdm import tqdm

LINE_EVERY = 15  # seconds
LOOK_EVERY = 1  # seconds


class ProgressBar(tqdm):
    """tqdm's bar, which writes lines where there is no terminal. Short work writes none."""

    monitor_interval = 0  # no thread beside the work

    def __init__(self, iterable=None, **options) -> None:
        self.is_bar = sys.stderr.isatty()
        self.last_line = 0.0
        if not self.is_bar:
            options |= {"mininterval": LOOK_EVERY, "delay": LOOK_EVERY, "leave": False}
            options |= {"ascii": True, "ncols": 79, "file": io.StringIO()}
        super().__init__(iterable, miniters=0, **options)

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        if self.is_bar:
            return super().display(msg, pos)
        seconds = self.format_dict["elapsed"]
        # An empty message is how tqdm removes a bar.
        if msg != "" and seconds - self.last_line >= LINE_EVERY:
            self.last_line = seconds
            print(self, file=sys.stderr, flush=True)
        return True
