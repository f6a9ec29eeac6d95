"""The report in a real browser: it renders, runs nothing, asks for nothing, and can be used."""

import base64
import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageOps

from neardup.adapters.cli import run
from neardup.guards import Loss
from neardup.report import ClusterView, GuardView, PairView, Report, Side, render_report, write_report

from .browser import Browser
from .rundirs import figures

HERE = Path(__file__).parent
CALLS = [
    "alert(1)", "fetch('http://evil.test/x')", "eval('1')", "window.open('http://evil.test')",
    "document.body.innerHTML='gone'", "location='http://evil.test/'",
]  # fmt: skip
PAYLOADS = [
    *(shape.replace("JS", call) for call in CALLS for shape in (
        "<script>JS</script>", "<img src=x onerror=\"JS\">", "<svg onload=\"JS\">", "<svg><script>JS</script></svg>",
        "\"><script>JS</script>", "'><script>JS</script>", "</title><script>JS</script>", "</style><script>JS</script>",
        "</textarea><script>JS</script>", "--><script>JS</script>", "]]><script>JS</script>", "</pre><script>JS</script>",
        "\" onmouseover=\"JS\" autofocus onfocus=\"JS\" x=\"", "' onfocus='JS' autofocus x='", "javascript:JS",
        "<a href=\"javascript:JS\">x</a>", "<iframe srcdoc=\"<script>JS</script>\"></iframe>",
        "<iframe src=\"javascript:JS\"></iframe>", "<details open ontoggle=\"JS\">", "<body onload=\"JS\">",
        "<input autofocus onfocus=\"JS\">", "<video><source onerror=\"JS\"></video>", "<math><mtext></p><img src onerror=\"JS\">",
        "<noscript><p title=\"</noscript><img src=x onerror=JS>\">", "<template><script>JS</script></template>",
        "<object data=\"javascript:JS\">", "<embed src=\"javascript:JS\">", "<form><button formaction=\"javascript:JS\">x</button></form>",
        "<marquee onstart=\"JS\">", "<sCrIpT>JS</ScRiPt>", "<script\x0c>JS</script>", "<scr\0ipt>JS</script>", "＜script＞JS＜/script＞",
    )),
    "<base href=\"http://evil.test/\">", "<link rel=stylesheet href=\"http://evil.test/a.css\">", "<link rel=prefetch href=//evil.test>",
    "<meta http-equiv=refresh content=\"0;url=http://evil.test/\">", "<img src=\"http://evil.test/a.png\">", "<img src=//evil.test/a>",
    "<style>@import 'http://evil.test/a.css';</style>", "<p style=\"background:url(http://evil.test/a)\">x</p>",
    "<style>body{display:none}</style>", "<video src=http://evil.test/a autoplay>", "<audio src=http://evil.test/a autoplay>",
    "<form action=http://evil.test><input name=a></form>", "<object data=http://evil.test/a.svg></object>", "{{7*7}}${7*7}<%= 7*7 %>",
    "{% for a in ().__class__.__mro__ %}x{% endfor %}", "&lt;script&gt;alert(1)&lt;/script&gt;", "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\ud800<script>alert(1)</script>", "\u202e<script>alert(1)</script>", "\x1b[31mred\x1b[0m\x1b]0;title\x07", "=HYPERLINK(\"http://evil.test\")",
]  # fmt: skip

FIRST_PAINT = """new Promise(done => new PerformanceObserver(list => {
  for (const one of list.getEntriesByName('first-contentful-paint')) done(one.startTime);
}).observe({type: 'paint', buffered: true}))"""


def hostile() -> list[str]:
    lines = (HERE / "badinput/jsonl/html_injection_ids.jsonl").read_text().splitlines()
    return [*PAYLOADS, *(value for line in lines for value in json.loads(line).values())]


def hostile_report(payloads: list[str]) -> Report:
    """Every payload in every place that a text can come from."""
    pairs = []
    for number, bad in enumerate(payloads):
        keeper = Side(bad, f"{bad} some words and {bad}", bad, {bad: bad, "url": bad})
        other = Side(f"{bad} other", f"{bad} other words and {bad}", bad, {bad: bad})
        pairs.append(PairView(keeper, other, number % 43, 0.9, figures(0.8, 0.7), number % 2 == 0, bad))
    some = pairs[:12] + pairs[-12:]
    worst = "\n".join(payloads)
    clusters = [
        ClusterView(pair.keeper, pairs[at : at + 8], 9) for at, pair in enumerate(pairs) if at % 8 == 0
    ]
    return Report(
        summary={
            "documents": 100, "kept": 60, "removed": 40, "clusters": 20, "similarity": 0.8, "radius": 42, "bits": 128,
            "measured": 50, "accepted": 40, "rejected": 10, "bad": 1, "without_information": 1, "keep": worst,
            "title": payloads[0], "reasons": dict.fromkeys(payloads, (1, 2)), "date": payloads[0], "folder": worst,
        },
        sizes={2: 10, 9: 10},
        distances={3: (4, 0), 40: (1, 3)},
        similarities=[(0.7, 0.8, 0, 10), (0.8, 0.9, 30, 0), (0.9, 1.0, 10, 0)],
        clusters=clusters,
        borderline=some,
        losses=[Loss(bad, 10, 3) for bad in payloads],
        guards=[GuardView(bad, 1, 2, True, [bad, bad], bad, bad) for bad in payloads],
        plan=worst,
        manifest={bad: bad for bad in payloads}
        | {"neardup": payloads[0], "run": payloads[0], "command": payloads, "inputs": [{"name": bad, "bytes": 1} for bad in payloads]},
    )  # fmt: skip


def plain_report() -> Report:
    words = [f"word{number}" for number in range(400)]
    changed = [*words[:200], "another", *words[201:]]
    pair = PairView(
        Side("keeper-1", " ".join(words), "a.jsonl"), Side("member-1", " ".join(changed), "b.jsonl"), 7, 0.93, figures(0.9, 0.85), True, "revision"
    )  # fmt: skip
    return Report(
        summary={
            "documents": 10,
            "kept": 9,
            "removed": 1,
            "clusters": 1,
            "similarity": 0.8,
            "keep": "longest",
        },
        sizes={2: 1},
        distances={7: (1, 0)},
        similarities=[(0.9, 1.0, 1, 0)],
        clusters=[ClusterView(pair.keeper, [pair], 2)],
        borderline=[pair],
    )


class Served(BaseHTTPRequestHandler):
    """One page; every request is counted."""

    page = b""
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200 if self.path == "/report.html" else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.page if self.path == "/report.html" else b"")

    def log_message(self, format: str, *values: object) -> None:
        pass


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


@pytest.fixture
def served() -> Iterator[type[Served]]:
    """A handler to set `page` on; `address` and `asked` tell where it is and what came."""
    handler = type("Handler", (Served,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        handler.address = f"http://127.0.0.1:{server.server_address[1]}/report.html"  # type: ignore[attr-defined]
        yield handler
        server.shutdown()
        thread.join()


def test_hostile_texts_run_nothing_and_ask_for_nothing(browser: Browser, served: type[Served]) -> None:
    payloads = hostile()
    assert len(payloads) >= 200
    for at in range(0, len(payloads), 40):
        served.page = render_report(hostile_report(payloads[at : at + 40])).encode()
        served.asked.clear()
        browser.open(served.address)  # type: ignore[attr-defined]
        browser.ask("document.querySelectorAll('details').forEach(one => { one.open = true })")
        browser.ask(
            "document.querySelectorAll('*').forEach(one => one.dispatchEvent(new Event('mouseover')))"
        )
        assert browser.ask("window.acts") == []
        assert browser.complaints() == []
        assert served.asked == ["/report.html"]
        assert {url for url in browser.requests() if not url.startswith("data:")} == {served.address}  # type: ignore[attr-defined]
        alien = "script, iframe, object, embed, img, video, audio, form, input, base, style ~ style, template, math, noscript"
        assert browser.ask(f"document.querySelectorAll('{alien}').length") == 0
        assert browser.ask(
            "[...document.querySelectorAll('a')].every(one => one.getAttribute('href')[0] == '#')"
        )
        names = "[...new Set([...document.querySelectorAll('*')].flatMap(one => one.getAttributeNames()))]"
        assert not [name for name in browser.ask(names) if name.startswith("on") or name == "style"]
        body = browser.ask("document.body.textContent")
        for bad in payloads[at : at + 40]:
            if bad.isprintable() and len(bad) < 80:
                assert bad in body


def test_the_page_works_from_a_file_without_a_complaint(browser: Browser, tmp_path: Path) -> None:
    write_report(plain_report(), tmp_path / "report.html")
    browser.open((tmp_path / "report.html").as_uri())
    assert browser.complaints() == []
    assert "1 of 10 documents" in browser.ask("document.querySelector('.lead').textContent")
    assert browser.ask("document.querySelectorAll('svg rect.yes').length") >= 3
    assert browser.ask("getComputedStyle(document.querySelector('ins')).textDecorationLine") == "underline"
    # What goes is struck through, on the right; what stays is not.
    assert browser.ask("document.querySelector('.side:last-child del').textContent") == "another"
    assert browser.ask("document.querySelector('.side:first-child ins').textContent") == "word200"
    assert browser.ask("document.querySelectorAll('.side:first-child del').length") == 0


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("report", [plain_report(), hostile_report(hostile()[:30])], ids=["plain", "hostile"])
def test_nothing_is_wider_than_the_window(
    browser: Browser, tmp_path: Path, width: int, report: Report
) -> None:
    write_report(report, tmp_path / "report.html")
    browser.open((tmp_path / "report.html").as_uri(), width=width)
    browser.ask("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert browser.ask("document.documentElement.scrollWidth") <= width
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 5000


def test_details_open_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    write_report(plain_report(), tmp_path / "report.html")
    browser.open((tmp_path / "report.html").as_uri())
    for _ in range(60):
        browser.press("Tab")
        if (
            browser.ask(
                "document.activeElement.closest('#details') != null && document.activeElement.tagName"
            )
            == "SUMMARY"
        ):
            break
    assert not browser.ask("document.activeElement.parentElement.open")
    browser.press("Enter")
    assert browser.ask("document.activeElement.parentElement.open")


def test_a_dark_page_has_dark_paper(browser: Browser, tmp_path: Path) -> None:
    write_report(plain_report(), tmp_path / "report.html")
    shades = []
    for scheme in ("light", "dark"):
        browser.call(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        browser.open((tmp_path / "report.html").as_uri())
        shades.append(browser.ask("getComputedStyle(document.body).backgroundColor"))
    browser.call("Emulation.setEmulatedMedia", features=[])
    assert shades[0] == "rgb(255, 255, 255)"
    assert sum(map(int, shades[1][4:-1].split(","))) < 150


def test_a_huge_line_and_a_huge_cluster_stay_usable(browser: Browser, tmp_path: Path) -> None:
    line, spaced = "x" * 1_000_000, "lorem ipsum " * 90_000
    other = line[:-1] + "y"
    keeper = Side("k" * 5000, line)
    pairs = [
        PairView(keeper, Side(f"m{number}", other), 1, 0.99, figures(0.9, 0.9), True, "nearly identical")
        for number in range(10_000)
    ]
    long = PairView(
        Side("a", spaced), Side("b", spaced + "dolor"), 1, 0.99, figures(0.9, 0.9), False, "too different"
    )
    report = Report(
        summary={"documents": 10_000, "kept": 1, "removed": 9_999, "clusters": 1, "similarity": 0.8},
        sizes={10_001: 1},
        clusters=[ClusterView(keeper, pairs, 10_001)],
        borderline=[*pairs, long],
        losses=[Loss(f"source {number}", 10, 1) for number in range(10_000)],
    )
    write_report(report, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 1_000_000
    browser.open((tmp_path / "report.html").as_uri())
    assert browser.complaints() == []
    assert "9,940 more members" in browser.ask("document.body.textContent")
    assert browser.ask("document.documentElement.scrollWidth") <= 1280
    # The promise is 1 s; the machines that run tests are shared and noisy.
    assert browser.ask(FIRST_PAINT) < 3000


def test_unseen_characters_are_spelt_out(browser: Browser, tmp_path: Path) -> None:
    letters = "\u202e\u200b\u200d\u2066\ufeff\u00ad\x00\x07\x1b\u2028\ud800\U000e0041\u3164"
    one = Side(f"id{letters}", f"some {letters} text")
    pair = PairView(one, Side("other", "some other text"), 1, 0.9, figures(0.9, 0.9), False, "too different")
    write_report(
        Report(summary={"documents": 2, "kept": 2, "removed": 0}, borderline=[pair]), tmp_path / "report.html"
    )
    browser.open((tmp_path / "report.html").as_uri())
    shown = browser.ask("document.body.textContent")
    assert not [letter for letter in letters if letter in shown]
    assert "202E" in shown
    assert browser.ask("document.querySelector('.unseen').title") == "U+202E RIGHT-TO-LEFT OVERRIDE"


def photo(seed: int) -> Image.Image:
    noise = np.random.default_rng(seed).integers(60, 200, (9, 12), dtype=np.uint8)
    return Image.fromarray(noise).resize((320, 240), Image.Resampling.BICUBIC).convert("RGB")


def stuck(image: Image.Image) -> Image.Image:
    """The image mirrored, with something white at its lower right, which was the lower left."""
    changed = ImageOps.mirror(image)
    ImageDraw.Draw(changed).rectangle((250, 180, 309, 229), fill="white")
    return changed


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run over two images, one of them mirrored with a sticker on it."""
    folder = tmp_path_factory.mktemp("images")
    (folder / "in").mkdir()
    photo(1).save(folder / "in/a.png")
    stuck(photo(1)).save(folder / "in/b.png")
    photo(2).save(folder / "in/c.png")
    page = folder / "report.html"
    choices = ["--keep", f"path:{folder}/in/a", "--report", str(page), "--no-guards", "--quiet"]
    assert run(["dedupe", str(folder / "in"), "-o", str(folder / "out"), *choices]) == 0
    return page


def box(browser: Browser, name: str) -> tuple[int, int, int, int]:
    """Where the first element of that class is in the window."""
    where = browser.ask(
        f"(one => [one.left, one.top, one.right, one.bottom])(document.querySelector('.{name}').getBoundingClientRect())"
    )
    left, top, right, bottom = map(round, where)
    return left, top, right, bottom


def seen(browser: Browser, name: str) -> Image.Image:
    """What the window shows there, 320 x 240."""
    data = browser.call("Page.captureScreenshot", format="png")["data"]
    shown = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")
    left, top, right, _ = box(browser, name)
    return shown.crop((left, top, right, top + (right - left) * 3 // 4)).resize((320, 240))


def colour(image: Image.Image, place: tuple[int, int]) -> tuple[int, ...]:
    found = image.getpixel(place)
    assert isinstance(found, tuple)
    return found


def test_a_slider_uncovers_the_keeper_below_the_image_that_goes(browser: Browser, images: Path) -> None:
    browser.open(images.as_uri(), height=1000)
    assert browser.complaints() == []
    browser.ask("document.querySelector('.overlay').scrollIntoView({block: 'center'})")
    width = browser.ask("document.querySelector('.overlay').clientWidth")
    sticker, clear = (40, 205), (300, 205)  # mirrored back, the sticker is at the lower left
    assert min(colour(seen(browser, "overlay"), sticker)) > 240
    for share, there in ((0.5, True), (0.97, False)):
        browser.ask(f"document.querySelector('.overlay').scrollLeft = {width * share}")
        shown = seen(browser, "overlay")
        assert (min(colour(shown, sticker)) > 240) == there
        assert np.abs(np.subtract(colour(shown, clear), colour(photo(1), clear))).max() < 12


def test_the_slider_moves_by_keyboard(browser: Browser, images: Path) -> None:
    browser.open(images.as_uri())
    browser.ask("document.querySelector('.overlay').focus()")
    browser.press("ArrowRight")
    moved = "new Promise(done => { const one = document.querySelector('.overlay'); one.scrollLeft ? done(true) : one.onscroll = () => done(true) })"
    assert browser.ask(moved)


def test_what_differs_is_red(browser: Browser, images: Path) -> None:
    browser.open(images.as_uri(), height=1000)
    browser.ask("document.querySelector('.difference').scrollIntoView({block: 'center'})")
    shown = np.asarray(seen(browser, "difference")).astype(int)
    red = shown[..., 0] - shown[..., 1] > 60
    assert red[190:220, 20:60].mean() > 0.9
    assert red[:160].mean() < 0.02
    said = browser.ask("document.querySelector('.difference + figcaption').textContent")
    assert 2 < float(said.partition("red: ")[2].partition("\xa0")[0]) < 10


@pytest.mark.parametrize("width", [1280, 400])
def test_no_image_is_wider_than_the_window(browser: Browser, images: Path, width: int) -> None:
    browser.open(images.as_uri(), width=width)
    assert browser.ask("document.documentElement.scrollWidth") <= width
