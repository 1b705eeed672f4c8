"""Did you mean: the known name that a wrong one is most like. Knows no torch."""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 200  # characters of a name that are looked at


def suggested(name: object, known: Iterable[str]) -> str:
    """The wrong name as errors show it, with the known one that is most like it, if there is any:
    "'scan_t2i_avgg' (did you mean scan_t2i_avg?)". Case does not count."""
    by_fold = {other.casefold(): other for other in known}
    near = get_close_matches(str(name)[:LONGEST].casefold(), by_fold, n=1)
    return f"{name!r:.{LONGEST}}" + (f" (did you mean {by_fold[near[0]]}?)" if near else "")
