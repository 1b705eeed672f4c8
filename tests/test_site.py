"""The page to explore a season, in a real browser: opened from disk, without a network."""

import json
import shutil
from pathlib import Path

import builders
import numpy as np
import pytest
from report_seasons import (
    HOSTILE,
    IMAGES,
    PRESETS,
    SCORES,
    cells,
    enter_played_season,
    lose,
    seal,
    season,
    texts_of,
)

from benchmark.__main__ import main
from benchmark.commands import site_libraries
from benchmark.core.errors import UserError

pytest.importorskip("itables", reason="the extra site is not installed")
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

pytestmark = pytest.mark.slow
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium and chromium-driver are not installed"
)
ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--window-size=1400,1000", "--host-resolver-rules=MAP * ~NOTFOUND"),  # no network
)
LONGEST_WAIT = 90  # seconds, on a busy machine
FIRST_PAINT = 2000  # milliseconds for MANY cells
MANY = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The site of a season with a failed cell; its captions are hostile."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("site") / "played"
        enter_played_season(tmp_path_factory, root, patch)
        for cell in cells(season()):
            count_scores(Path(cell.folder))
        lose("open", "scan_i2t_lse", 0, HOSTILE)
        lose("open", "scan_i2t_lse", 1, HOSTILE)
        assert main(["site", "--public", "public"]) == 0
        assert main(["site"]) == 0
        yield root


def count_scores(cell: Path) -> None:
    """Histograms of a cell's scores, as an evaluation writes them."""
    with np.load(cell / "scores/similarities.npz") as stored:
        arrays = dict(stored)
    arrays["edges"] = np.linspace(-1, 1, 201)
    for name in ("matched", "unmatched"):
        arrays[name] = np.histogram(arrays[f"{name}_sample"], arrays["edges"])[0].astype(float)
    builders.write_arrays(cell, "similarities", **arrays)
    seal(cell / "record.json", [f"scores/{name}" for name in SCORES])


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def opened(browser, folder: Path, place: str = ""):
    """The page, once it shows something."""
    browser.get("about:blank")
    browser.get(f"{(folder / 'index.html').as_uri()}{place}")
    wait(browser, lambda: browser.find_elements(By.ID, "title"))
    return browser


def wait(browser, ready):
    return WebDriverWait(browser, LONGEST_WAIT).until(lambda _: ready())


def check_quiet(browser) -> None:
    """Nothing went wrong, and no text of others ran."""
    assert browser.get_log("browser") == []
    assert browser.find_element(By.ID, "status").text == ""
    assert not browser.find_elements(By.CSS_SELECTOR, "#page script, #page b, #page i")


def column(browser, number: int) -> list[str]:
    cells = browser.find_elements(By.CSS_SELECTOR, f"tbody tr > :nth-child({number})")
    return [cell.text for cell in cells]


def board(dataset: str) -> str:
    return f"{dataset}%2Fretrieval"


@needs_browser
def test_the_leaderboard_is_sorted_and_filtered_with_the_keyboard(folder, browser):
    opened(browser, folder / "public", f"#leaderboard/{board('open')}")
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "table.dataTable"))
    rsums = [text for text in column(browser, 3)]
    played = [float(text) for text in rsums if text != "\N{EN DASH}"]
    assert len(rsums) == len(PRESETS) and played == sorted(played, reverse=True)
    head = browser.find_element(By.CSS_SELECTOR, "thead th:nth-child(3)")
    head.find_element(By.CSS_SELECTOR, "[tabindex='0']").send_keys(Keys.ENTER)
    wait(browser, lambda: head.get_attribute("aria-sort") == "ascending")
    assert [t for t in column(browser, 3) if t in rsums[: len(played)]] == rsums[: len(played)][
        ::-1
    ]
    search = browser.find_element(By.CSS_SELECTOR, "input[type=search]")
    search.send_keys("SCAN t-i AVG")
    wait(browser, lambda: len(column(browser, 1)) == 2)
    search.send_keys(Keys.CONTROL, "a", Keys.BACKSPACE)
    Select(browser.find_element(By.ID, "method")).select_by_value("two_branch_embedding")
    wait(browser, lambda: len(column(browser, 1)) == 1)
    check_quiet(browser)


@needs_browser
def test_intervals_and_marks_stand_on_the_leaderboard(folder, browser):
    opened(browser, folder / "public", f"#leaderboard/{board('open')}")
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "table.dataTable"))
    text = browser.find_element(By.TAG_NAME, "tbody").text
    assert "[" in text and "budget" in text and "few trainings" in text and "failed" in text


@needs_browser
def test_a_cell_is_opened(folder, browser):
    opened(browser, folder / "public", f"#leaderboard/{board('open')}")
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "table.dataTable"))
    browser.find_element(By.LINK_TEXT, "SCAN t-i AVG").send_keys(Keys.ENTER)
    wait(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, "figure svg")) == 2)
    text = browser.find_element(By.ID, "page").text
    assert "results/try/open/scan_t2i_avg/1" in text and "epochs" in text
    check_quiet(browser)
    opened(browser, folder / "public", f"#cell/{board('open')}/scan_i2t_lse")
    assert "<script>alert(1)</script>" in browser.find_element(By.CLASS_NAME, "failed").text
    check_quiet(browser)


@needs_browser
def test_two_presets_side_by_side(folder, browser):
    names = "scan_t2i_avg/two_branch_bidirectional"
    opened(browser, folder / "public", f"#compare/{board('open')}/{names}")
    wait(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, "figure svg")) == 3)
    text = browser.find_element(By.ID, "page").text
    assert "rsum: +" in text and "Moved most" in text and "won" in text
    Select(browser.find_element(By.ID, "second")).select_by_value("scan_t2i_avg_i2t_lse")
    wait(browser, lambda: "rsum: -" in browser.find_element(By.ID, "page").text)
    check_quiet(browser)


@needs_browser
def test_one_training_each_has_no_p(folder, browser, tmp_path):
    copy = shutil.copytree(folder / "public", tmp_path / "once")
    path = copy / "data/season.js"
    names = "scan_t2i_avg/two_branch_bidirectional"
    for is_of_these in (False, True):
        start, _, text = path.read_text().partition("=")
        data = json.loads(text.rstrip(";\n"))
        for each in data["boards"]:
            for pair in each["pairs"].values():
                pair["of_these"] = is_of_these
        path.write_text(f"{start}={json.dumps(data)};\n")
        opened(browser, copy, f"#compare/{board('open')}/{names}")
        told = browser.find_element(By.ID, "verdict").text
        assert ("; nothing is known of other trainings" in told) is is_of_these
        assert (", p " in told) is not is_of_these


@needs_browser
@pytest.mark.parametrize("way", ["i2t", "t2i"])
def test_queries_are_browsed_with_pictures(folder, browser, way):
    opened(browser, folder / ".scratch/site/try", f"#queries/{board('gated')}/scan_t2i_avg/{way}")
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "tbody button"))
    browser.find_elements(By.CSS_SELECTOR, "tbody button")[0].send_keys(Keys.ENTER)
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, ".results li"))
    pictures = browser.find_elements(By.CSS_SELECTOR, "#query img")
    assert len(pictures) == (1 if way == "i2t" else 5)
    wait(browser, lambda: all(p.get_property("naturalWidth") == 160 for p in pictures[:1]))
    assert all(picture.get_attribute("alt") for picture in pictures)
    assert browser.switch_to.active_element.text == "Query"  # what a screen reader reads next
    check_quiet(browser)


@needs_browser
def test_claims_and_plots(folder, browser):
    opened(browser, folder / "public", f"#claims/{board('open')}")
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "table.dataTable"))
    Select(browser.find_element(By.ID, "verdict")).select_by_value("not run")
    wait(browser, lambda: set(column(browser, 3)) == {"not run"})
    opened(browser, folder / "public", f"#plots/{board('open')}")
    wait(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, "figure svg")) == 6)
    told = "figure [aria-label^='Quality against seconds of training. Lines are']"
    assert browser.find_elements(By.CSS_SELECTOR, told)  # by a screen reader
    check_quiet(browser)


@needs_browser
def test_claims_have_the_decimals_of_their_metric(folder, browser, tmp_path):
    copy = shutil.copytree(folder / "public", tmp_path / "shares")
    path = copy / "data/season.js"
    start, _, text = path.read_text().partition("=")
    data = json.loads(text.rstrip(";\n"))
    claim = next(claim for claim in data["claims"] if claim["dataset"] == "open")
    claim |= {"difference": 0.0184, "interval": [0.0102, 0.0266], "decimals": 3}
    path.write_text(f"{start}={json.dumps(data | {'claims': [claim]})};\n")
    opened(browser, copy, f"#claims/{board('open')}")
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "table.dataTable"))
    assert (column(browser, 5), column(browser, 6)) == (["0.018"], ["[0.010, 0.027]"])
    check_quiet(browser)


@needs_browser
def test_light_and_dark(folder, browser):
    def back() -> str:
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    opened(browser, folder / "public")
    light = back()
    browser.find_element(By.ID, "theme").send_keys(Keys.ENTER)
    assert (light, back()) == ("rgb(255, 255, 255)", "rgb(21, 24, 28)")


@needs_browser
def test_the_first_paint_of_many_cells(folder, browser, tmp_path):
    copy = shutil.copytree(folder / "public", tmp_path / "many")
    path = copy / "data/season.js"
    start, _, text = path.read_text().partition("=")
    data = json.loads(text.rstrip(";\n"))
    rows = data["boards"][0]["standings"]
    data["boards"][0]["standings"] = [
        row | {"preset": f"p{number}", "title": f"Preset {number}"}
        for number, row in enumerate((rows * MANY)[:MANY])
    ]
    path.write_text(f"{start}={json.dumps(data)};\n")
    opened(browser, copy)
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "table.dataTable"))
    paints = browser.execute_script(
        "return performance.getEntriesByType('paint').map((each) => each.startTime)"
    )
    assert paints and max(paints) < FIRST_PAINT
    assert f"{MANY} rows" in browser.find_element(By.ID, "page").text
    check_quiet(browser)


def test_what_may_not_be_published_stays_here(folder):
    public, own = folder / "public", folder / ".scratch/site/try"
    assert len(list((own / "pictures/gated").iterdir())) == IMAGES
    assert not (public / "pictures/gated").exists()
    assert len(list((public / "pictures/open").iterdir())) == IMAGES
    texts = {path: path.read_text() for path in public.rglob("*.js")}
    quoted = json.dumps(texts_of("gated")[0])
    assert [path for path, text in texts.items() if quoted in text] == []
    assert quoted in (own / "data/items/gated.js").read_text()


def test_nothing_is_loaded_from_elsewhere(folder):
    for name in ("index.html", "site.css", "site.js"):
        text = (folder / "public" / name).read_text()
        assert "//" not in text.replace("https://vega.github.io/schema", "").replace("\n//", "")
    assert "MIT license" in (folder / "public/LICENSES.txt").read_text()


def test_only_its_own_folder_is_replaced(folder, capsys):
    assert main(["site", "--public", "public"]) == 0
    Path("public/rematch-site.txt").unlink()
    assert main(["site", "--public", "public"]) == 2
    assert "expected a new or empty folder" in capsys.readouterr().err
    Path("public/rematch-site.txt").write_text("")
    Path("notes.txt").write_text("mine")
    assert main(["site", "--public", "notes.txt"]) == 2
    assert "notes.txt: expected a new or empty folder, found a file" in capsys.readouterr().err
    assert Path("notes.txt").read_text() == "mine"


def test_without_the_extra(monkeypatch, folder, capsys):
    monkeypatch.setattr(site_libraries, "itables", None)
    assert main(["site"]) == 2
    assert "pip install -e '.[site]'" in capsys.readouterr().err


@pytest.mark.parametrize("module", ["let a;", "import{b}from'c';export{a}", "export{a"])
def test_a_bundle_of_another_form_is_refused(module):
    with pytest.raises(UserError, match="a bundle with one list of exports"):
        site_libraries.as_script(module)


def test_a_module_becomes_a_script():
    script = site_libraries.as_script("let x=1,y=2;export{x as default,y};/* MIT */")
    assert script == '(()=>{let x=1,y=2;\nwindow.tables={"default":x,"y":y};})();/* MIT */'
