"""The scripts that the site is shipped with, from Python packages: DataTables and Vega-Lite."""

from importlib.util import find_spec
from pathlib import Path

from benchmark.core.errors import UserError
from benchmark.core.files import write_text

if find_spec("itables") and find_spec("vl_convert"):  # the extra `site`
    import itables
    import vl_convert
else:
    itables = vl_convert = None

EXPORTS = "export{"
CACHE = Path(".scratch/site-libraries")


def libraries() -> dict[str, str]:
    """File -> text. Raises UserError without the extra."""
    if itables is None:
        expected = "the packages itables and vl-convert-python"
        raise UserError("site", expected, "not installed", "run: pip install -e '.[site]'")
    folder = Path(itables.__file__).parent / "html"
    return {
        "datatables.js": as_script((folder / "dt_bundle.js").read_text(encoding="utf-8")),
        "datatables.css": (folder / "dt_bundle.css").read_text(encoding="utf-8"),
        "vega.js": _vega(),
    }


def as_script(module: str) -> str:
    """A module as a script, since a page that is opened from disk may load no modules: what it
    exports becomes properties of `window.tables`. Raises UserError for a module of another form."""
    body, mark, rest = module.rpartition(EXPORTS)
    exported, end, notices = rest.partition("}")
    if not mark or not end or "import{" in body:
        raise UserError("itables", "a bundle with one list of exports", "another form", "report it")
    pairs = [pair.split(" as ") for pair in exported.split(",")]
    properties = ",".join(f'"{names[-1].strip()}":{names[0].strip()}' for names in pairs)
    return f"(()=>{{{body}\nwindow.tables={{{properties}}};}})(){notices}"


def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed; to put them together takes ten seconds, once a version."""
    path = CACHE / f"vega-{vl_convert.get_vega_version()}-{vl_convert.get_vega_embed_version()}.js"
    if not path.is_file():
        # Its names would be global, and some are the page's own.
        write_text(path, f"(()=>{{{vl_convert.javascript_bundle()}\n}})();")
    return path.read_text(encoding="utf-8")
