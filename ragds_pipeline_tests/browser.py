"""The Dagster UI as a person uses it, in a real browser: pages, buttons, and what can be read on them.

What belongs here: how to find a thing on a page of Dagster. What a walk does and what it must see is in the walk.
GraphQL is asked only whether a run has ended; all else goes through the page. The icon of a button is part of its
accessible name, so that no name here is anchored.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import Locator, Page, expect, sync_playwright

from ragds_pipeline_tests.projects import REPOSITORY

PATIENCE_S = 240
"""How long a page or a button may take: on a busy machine the first page alone takes most of a minute."""

RUN_PATIENCE_S = 900

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """Return the path of the system's Chromium, or None."""
    return next((path for name in CHROMIUM if (path := shutil.which(name))), None)


@contextmanager
def served(project: Path) -> Iterator[str]:
    """Start ``ragds ui`` for a project as a user does, on a free port, and give its address; stop it at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = project / "ui.log"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "ragds_pipeline.cli", "ui", "--port", str(port)]
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(command, cwd=project, env=environment, stdout=out, stderr=out)
    try:
        until = time.monotonic() + RUN_PATIENCE_S
        while "Dagster UI: http" not in log.read_text(encoding="utf-8"):
            if process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"the UI did not start:\n{log.read_text(encoding='utf-8')[-3000:]}")
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(90)
        process.kill()


@contextmanager
def opened(url: str, shots: Path) -> Iterator[Ui]:
    """Open a browser on the UI at ``url``; pictures go to ``shots``, also one of the last page if something fails."""
    shots.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(PATIENCE_S * 1000)
        page.set_default_navigation_timeout(PATIENCE_S * 1000)
        expect.set_options(timeout=PATIENCE_S * 1000)
        try:
            yield Ui(page, url, shots)
        except BaseException:
            with suppress(Exception):
                page.screenshot(path=shots / "failed.png", timeout=30_000)
            raise
        finally:
            browser.close()


class Ui:
    """One browser window on a Dagster UI."""

    def __init__(self, page: Page, url: str, shots: Path) -> None:
        self.page, self.url, self.shots = page, url, shots

    def open(self, path: str, *shown: str) -> None:
        """Go to a page and wait until all of ``shown`` can be read on it."""
        self.page.goto(self.url + path, wait_until="domcontentloaded")
        for text in shown:
            expect(self.page.get_by_text(text, exact=True).first).to_be_visible()

    def picture(self, name: str) -> None:
        """Keep what is to be seen now as ``<name>.png``, once nothing is loading any more."""
        expect(self.page.get_by_text(re.compile(r"^Loading"))).to_have_count(0)
        expect(self.page.locator("[class*=Spinner], .bp5-spinner, .bp5-skeleton")).to_have_count(0)
        self.page.screenshot(path=self.shots / f"{name}.png", animations="disabled")

    def runs(self) -> dict[str, str]:
        """Return the status of each run by id, newest first."""
        query = "{runsOrError{... on Runs{results{runId status}}}}"
        answer = self.page.request.post(f"{self.url}/graphql", data={"query": query}, timeout=PATIENCE_S * 1000).json()
        return {run["runId"]: run["status"] for run in answer["data"]["runsOrError"]["results"]}

    def ended(self, before: set[str]) -> tuple[str, str]:
        """Wait until a run that is not in ``before`` has ended; return its id and status."""
        until = time.monotonic() + RUN_PATIENCE_S
        while time.monotonic() < until:
            new = {id_: status for id_, status in self.runs().items() if id_ not in before}
            for id_, status in new.items():
                if status in ("SUCCESS", "FAILURE", "CANCELED"):
                    return id_, status
            self.page.wait_for_timeout(1000)
        raise AssertionError(f"no run ended within {RUN_PATIENCE_S} s: {self.runs()}")

    def choose_partition(self, what: str, partition: str) -> Locator:
        """Open a job or group (``jobs/...``, ``asset-groups/...``), press Materialize and choose a partition.

        Returns the dialog, ready to launch.
        """
        self.open(f"/locations/ragds_pipeline/{what}")
        self.page.get_by_role("button", name=re.compile("Materialize all")).click()
        dialog = self.page.locator(".dagster-dialog")
        expect(dialog.get_by_text(re.compile("^Launch runs to materialize"))).to_be_visible()
        dialog.get_by_text("Select a partition or create one").click()
        popover = self.page.locator(".dagster-popover")
        popover.get_by_text(partition).first.click()
        self.page.keyboard.press("Escape")
        expect(popover).to_have_count(0)
        expect(dialog.get_by_role("button", name="Launch 1 run")).to_be_enabled()
        return dialog

    def launch(self, dialog: Locator) -> tuple[str, str]:
        """Press the button of a launch dialog, wait for the run, and return its id and status."""
        before = set(self.runs())
        dialog.get_by_role("button", name="Launch 1 run").click()
        expect(dialog).to_have_count(0)
        return self.ended(before)

    def materialize(self, asset: str) -> tuple[str, str]:
        """Press Materialize on the page of an asset without partitions; wait for the run."""
        self.open(f"/assets/{asset}", "Description")
        before = set(self.runs())
        self.page.get_by_role("button", name=re.compile("Materialize")).first.click()
        return self.ended(before)

    def rerun_what_failed(self, run: str) -> tuple[str, str]:
        """Choose "From failure" on the page of a run; wait for the new run."""
        before = set(self.runs())
        self.open(f"/runs/{run}")
        again = self.page.get_by_role("button", name=re.compile("Re-execute all"))
        again.locator("xpath=following::button[1]").click()
        self.page.get_by_text("From failure", exact=True).click()
        return self.ended(before)

    def partition(self, asset: str, partition: str) -> None:
        """Open what the pages call the Partitions tab of an asset, at one partition."""
        self.open(f"/assets/{asset}?view=partitions&partition={partition}", "Metadata")

    def fact(self, key: str, picture: str = "") -> str:
        """Return a value of the metadata on the page; a long one is opened, as a person would, for its ``picture``."""
        key_cell = self.page.locator("td:first-child").filter(has_text=re.compile(f"^{re.escape(key)}$"))
        value = key_cell.first.locator("xpath=following-sibling::td[1]")
        expect(value).to_be_visible()
        more = value.get_by_text("[Show Markdown]")
        if not more.count():
            return value.inner_text().strip()
        more.click()
        dialog = self.page.locator(".dagster-dialog")
        # What shows Markdown is loaded when it is first needed: until then the dialog is there and empty.
        expect(dialog.locator("table, p, ul, ol, pre, h1, h2, h3").first).to_be_visible()
        text = dialog.inner_text()
        if picture:
            self.picture(picture)
        dialog.get_by_role("button", name="Close").click()
        expect(dialog).to_have_count(0)
        return text

    def check(self, asset: str, name: str, says: str) -> None:
        """Open the page of one check of an asset and wait until it says what the pattern ``says`` matches."""
        self.open(f"/assets/{asset}?view=checks&checkDetail={name}", "Evaluation result")
        expect(self.page.locator("body")).to_contain_text(re.compile(says))
