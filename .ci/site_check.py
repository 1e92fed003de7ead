"""Looks at the built site as a reader does: links, a browser, search, accessibility, screenshots.

    python .ci/site_check.py docs/_build/html docs/_build/screenshots

The browser is Debian's Chromium. Where there is none, or no Playwright, links alone are checked.
"""

import shutil
import sys
from collections.abc import Iterator
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag, urljoin, urlparse

from bs4 import BeautifulSoup

if TYPE_CHECKING:
    from playwright.sync_api import Page

SIZES = {"desk": (1440, 900), "phone": (390, 844)}
PAGES = (
    "index",
    "start",
    "matching",
    "kinds",
    "reference/matcher",
    "reference/generated/colmatch.Matcher.match",
    "command-line/match",
)
# Sphinx writes the parameters of a signature as a list of definitions without terms.
RULES = {"rules": {"definition-list": {"enabled": False}}}
FILES = ("404.html", "llms.txt", "llms-full.txt", "objects.inv", "sitemap.xml", "_static/versions.json")
FOLDERS = ("tutorials", "recipes", "kinds", "operations")  # a page of each is looked at, if there are any
ELSEWHERE = "http://elsewhere.invalid/"


@cache
def ids(page: Path) -> frozenset[str]:
    soup = BeautifulSoup(page.read_text(), "html.parser")
    return frozenset(tag[name] for name in ("id", "name") for tag in soup.find_all(attrs={name: True}))


def broken_links(site: Path) -> Iterator[str]:
    """Yields each link from page to page, picture or heading that leads nowhere."""
    for page in sorted(site.rglob("*.html")):
        soup = BeautifulSoup(page.read_text(), "html.parser")
        here = urljoin(ELSEWHERE, page.relative_to(site).as_posix())
        if page.name == "404.html" or "_static" in page.parts:  # its links begin at the root; templates
            continue
        links = {
            tag[name] for name in ("href", "src") for tag in soup.find_all(attrs={name: True}) if tag.name != "link"
        }
        for link in sorted(links):
            url, anchor = urldefrag(urljoin(here, link))
            if not url.startswith(ELSEWHERE):
                continue
            to = site / unquote(urlparse(url).path.lstrip("/"))
            to = to / "index.html" if to.is_dir() else to
            if not to.is_file():
                yield f"{page.relative_to(site)}: {link} is not there"
            elif anchor and to.suffix == ".html" and unquote(anchor) not in ids(to):
                yield f"{page.relative_to(site)}: {link}: no such place"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


def pages_of(site: Path) -> list[str]:
    some = [
        next((page for page in sorted((site / folder).glob("*.html")) if page.stem != "index"), None)
        for folder in FOLDERS
    ]
    return [*PAGES, *(page.relative_to(site).with_suffix("").as_posix() for page in some if page)]


def looked_at(site: Path, shots: Path, chromium: str) -> Iterator[str]:
    """Yields what is wrong with pages as a browser shows them, and makes pictures of them."""
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_port}/"
    shots.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for size, (width, height) in SIZES.items():
            context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
            # The list of versions is that of the site on the net.
            context.route(
                "**/*", lambda route: route.continue_() if route.request.url.startswith(root) else route.abort()
            )
            for name in pages_of(site):
                page = context.new_page()
                failed: list[str] = []
                page.on("pageerror", lambda error, failed=failed: failed.append(str(error)))
                page.goto(f"{root}{name}.html")
                page.wait_for_load_state("load")
                yield from (f"{name} ({size}): {error}" for error in failed)
                if page.locator("h1").count() != 1 or not page.title():
                    yield f"{name} ({size}): needs one heading of the first level, and a title"
                for theme in ("light", "dark") if size == "desk" else ("light",):
                    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
                    page.wait_for_timeout(100)
                    page.screenshot(path=shots / f"{name.replace('/', '-')}-{size}-{theme}.png")
                    found = Axe().run(page, context="main", options=RULES).response["violations"]
                    for violation in found:
                        nodes = "; ".join(node["html"][:120] for node in violation["nodes"][:3])
                        yield f"{name} ({size}, {theme}): {violation['id']}: {violation['help']}: {nodes}"
                page.close()
            if size == "phone":
                yield from too_wide(context.new_page(), site, root, width)
            yield from searched(context.new_page(), root, shots / f"search-{size}.png", size)
            context.close()
        browser.close()
    server.shutdown()


def too_wide(page: "Page", site: Path, root: str, width: int) -> Iterator[str]:
    """Yields the pages that must be scrolled sideways; those of single names are much alike."""
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if not name.startswith(("_static", "reference/generated", "genindex", "404")):
            page.goto(f"{root}{name}")
            if page.evaluate("document.documentElement.scrollWidth") > width:
                yield f"{name}: wider than a telephone"


def searched(page: "Page", root: str, shot: Path, size: str) -> Iterator[str]:
    """Searches for a method, which must be found in the reference and in the guide."""
    page.goto(f"{root}search.html?q=match_topk")
    page.wait_for_selector("#search-results li a", timeout=20_000)
    page.wait_for_timeout(500)
    page.screenshot(path=shot)
    found = page.eval_on_selector_all("#search-results li a", "links => links.map(link => link.href)")
    for part in ("reference/generated/colmatch.Matcher.match_topk.html", "topk.html"):
        if not any(part in link for link in found):
            yield f"search ({size}): {part} is not among {len(found)} results"


def main() -> None:
    site, shots = Path(sys.argv[1]), Path(sys.argv[2])
    wrong = [f"{name} is not there" for name in FILES if not (site / name).is_file()]
    wrong += broken_links(site)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        import playwright  # noqa: F401
    except ImportError:
        print("not looked at in a browser: there is no Playwright (pip install --group docs)")
    else:
        if chromium:
            wrong += looked_at(site, shots, chromium)
            print(f"screenshots are in {shots}")
        else:
            print("not looked at in a browser: there is no Chromium (apt-get install chromium)")
    print("\n".join(wrong) or f"{len(list(site.rglob('*.html')))} pages: nothing wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
