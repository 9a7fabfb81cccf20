"""A real browser for the pages of the leaderboard: Debian's chromium, driven by playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

# Without a window and without a word to the network: what chromium asks on its own would look like
# a request of the page.
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
ARGUMENTS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests; they are skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="pip install playwright to test the pages in a browser")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("apt-get install chromium to test the pages in a browser")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Visit:
    """An open page of a folder, and everything that went wrong since: errors, requests that failed
    or left the folder, dialogs."""

    page: Any
    folder: Path
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        own = self.folder.as_uri() + "/"
        self.page.on(
            "console", lambda message: message.type == "error" and self.wrong.append(f"console: {message.text}")
        )
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("requestfailed", lambda request: self.wrong.append(f"request failed: {request.url}"))
        self.page.on(
            "request",
            lambda request: (
                request.url.startswith((own, "data:", "blob:")) or self.wrong.append(f"request: {request.url}")
            ),
        )
        self.page.on("dialog", self._dialog)

    def _dialog(self, dialog: Any) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, file: str) -> Visit:
        """Show a file of the folder and wait until its scripts are done."""
        self.page.goto((self.folder / file.partition("#")[0]).as_uri() + "".join(file.partition("#")[1:]))
        self.page.wait_for_function("document.documentElement.dataset.ready === 'yes'", timeout=15_000)
        return self


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[[Path, str], Visit]]:
    """Opens a file of a folder in a fresh profile."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(15_000)
    yield lambda folder, file: Visit(context.new_page(), folder).open(file)
    context.close()


@pytest.fixture
def barriers() -> Callable[..., list[str]]:
    """Finds what keeps people out of a page, by axe: a rule, and elements that break it. Given
    ``rules``, it asks for those alone."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")

    def found(page: Any, *rules: str) -> list[str]:
        options = {"preload": False} | ({"runOnly": rules} if rules else {})  # preloading fetches style sheets
        violations = axe.Axe().run(page, options=options).response["violations"]
        return [f"{each['id']}: {[node['html'][:100] for node in each['nodes'][:3]]}" for each in violations]

    return found
