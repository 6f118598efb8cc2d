"""The real thing: sheets that LibreOffice opened and saved come back with no false edit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ragds_pipeline.review.sheet_in import interpret, read_sheet
from ragds_pipeline.review.sheet_out import write_csv, write_xlsx
from ragds_pipeline_tests.review.sheets import NASTY, by_id, row

SOFFICE = shutil.which("soffice")
pytestmark = pytest.mark.skipif(SOFFICE is None, reason="LibreOffice (soffice) is not installed")

ROWS = [row(f"c-{n}", question=text, answer=text, evidence=(text, "b")) for n, text in enumerate(NASTY)]
ROWS += [row("1-2"), row("0012")]

OPEN_CSV = "CSV:44,34,76,1"
"""Comma, double quote, UTF-8, from line 1; columns as LibreOffice sees fit, which is what a user gets."""


def csv_filter(delimiter: str, code_page: int) -> str:
    """Return the name under which LibreOffice saves CSV; 76 is UTF-8, 65535 UTF-16, 64 cp932, 1 cp1252."""
    return f"csv:Text - txt - csv (StarCalc):{ord(delimiter)},34,{code_page},1,,0,false,true,false"


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profile")


def converted(source: Path, target: str, profile: Path, *options: str) -> Path:
    """Let LibreOffice open ``source`` and save it as ``target``; return the new file."""
    folder = source.parent / f"{source.stem}-saved-{len(list(source.parent.iterdir()))}"
    command = [str(SOFFICE), f"-env:UserInstallation=file://{profile}", "--headless", *options]
    command += ["--convert-to", target, "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=180)
    [result] = folder.iterdir()
    return result


def assert_unedited(path: Path) -> None:
    result = interpret(read_sheet(path, by_id(*ROWS)), by_id(*ROWS))
    assert (result.problems, result.undecided) == ((), len(ROWS))


def test_csv_to_xlsx_to_csv(tmp_path: Path, profile: Path) -> None:
    write_csv(ROWS, tmp_path / "s.csv")
    workbook = converted(tmp_path / "s.csv", "xlsx", profile, f"--infilter={OPEN_CSV}")
    assert_unedited(workbook)
    assert_unedited(converted(workbook, csv_filter(",", 76), profile))


def test_xlsx_to_xlsx_to_every_csv(tmp_path: Path, profile: Path) -> None:
    write_xlsx(ROWS, tmp_path / "s.xlsx")
    workbook = converted(tmp_path / "s.xlsx", "xlsx", profile)
    assert_unedited(workbook)
    for delimiter, code_page in ((";", 76), ("\t", 65535), (",", 64), (";", 1)):
        assert_unedited(converted(workbook, csv_filter(delimiter, code_page), profile))
