"""What a method and a dataset promise: the contracts of plug-ins, and where plug-ins
lie."""

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
# The folder of methods/, datasets/ and seasons/: inside of the package where a wheel
# was installed, beside it in a checkout. Beside an installed package may lie a library
# named `datasets`.
HOME = _PACKAGE if (_PACKAGE / "methods").is_dir() else _PACKAGE.parent
