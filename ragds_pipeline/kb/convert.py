"""Documents that are not text become Markdown, through kreuzberg (the extra ``convert``).

The Markdown is what offsets refer to, so the converter's name and version are stored with each document, and another
version is another revision. Nothing is fetched and no OCR is run: a scanned PDF is reported as holding no text.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module, metadata
from pathlib import PurePosixPath
from typing import Any

MIME = {
    ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".html": "text/html",
    ".htm": "text/html",
}

# kreuzberg 4.10 renders an HTML file's <title> and <meta> as '---', 'name: value' lines and '## title: ...', which
# Markdown reads as a break and a heading. They are no part of the page.
_HTML_METADATA = re.compile(r"---\n(?:[\w:.-]+: [^\n]*\n)*\n?(?:## title: [^\n]*\n+)?")


class NoConverter(RuntimeError):
    """The extra is not installed."""


class ConversionFailed(RuntimeError):
    """The converter could not read the file, or found no text in it."""


@cache
def converter_version() -> str:
    """Return ``kreuzberg/<version>``, or ``none`` where the extra is not installed."""
    try:
        return f"kreuzberg/{metadata.version('kreuzberg')}"
    except metadata.PackageNotFoundError:
        return "none"


def to_markdown(path: str, data: bytes) -> str:
    """Return the Markdown text of a document.

    Raises NoConverter without the extra, and ConversionFailed for a damaged file, an unknown kind, or a file in
    which there is no text (a scan).
    """
    suffix = PurePosixPath(path).suffix.lower()
    if suffix not in MIME:
        raise ConversionFailed(f"no converter for {suffix or 'files without extension'}; exclude it in kb.yaml")
    if converter_version() == "none":
        raise NoConverter(f"{suffix} needs the converter: pip install 'ragds[convert]'")
    kreuzberg: Any = import_module("kreuzberg")  # its type hints lag behind what it takes and gives
    config = kreuzberg.ExtractionConfig(
        output_format=kreuzberg.OutputFormat.MARKDOWN, use_cache=False, disable_ocr=True
    )
    try:
        text = str(kreuzberg.extract_bytes_sync(data, MIME[suffix], config=config).content)
    except Exception as error:  # its errors have no common base that also covers panics in its native part
        raise ConversionFailed(f"{type(error).__name__}: {str(error)[:300]}") from error
    if suffix in (".html", ".htm") and (match := _HTML_METADATA.match(text)) and match.end() > 4:
        text = text[match.end() :]
    if not text.strip():
        raise ConversionFailed("no text found; a scan needs OCR before it can be evidence")
    return text
