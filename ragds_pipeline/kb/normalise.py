"""From a file's bytes to the normalised text that all offsets refer to.

What belongs here: decoding, normalising, and telling where the front matter ends. What does not: converting
other formats to Markdown, and anything that reads a file.

Normalising is minimal on purpose: a clean UTF-8 / LF / NFC file normalises to itself, so that offsets hold
in the user's own file. Whatever changes the outcome for some input must raise ``NORMALISER_VERSION``, as a
new version is a new revision of every document.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass

import charset_normalizer
import yaml

NORMALISER_VERSION = "1"

# UTF-32 LE begins with the BOM of UTF-16 LE, so it has to be asked for first.
_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# C0 controls that no text editor writes; tab, LF, VT, FF, CR and ESC (terminal colours in logs) do occur in
# texts.
_CONTROLS = bytes(set(range(0x20)) - {0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1B})
_MAX_CONTROL_SHARE = 0.01

_MAX_FRONT_MATTER = 32_768
"""Real front matter is a few hundred characters; the limit bounds the work an odd file can cause."""


class Undecodable(ValueError):
    """The bytes are no text that can be decoded without guessing away damage."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded text (not yet normalised, without its BOM) and the encoding it was decoded from."""

    text: str
    encoding: str


def decode(data: bytes, declared: str | None = None) -> Decoded:
    """Decode a file's bytes: by its BOM, else as declared, else as strict UTF-8, else as detected.

    Args:
        data: the file's bytes.
        declared: an encoding somebody vouches for. It must fit; a BOM still goes before it.

    Raises:
        Undecodable: for binary data, NUL characters, bytes that do not fit the BOM or the declared
            encoding, and bytes for which no encoding is likely. Nothing is ever replaced by U+FFFD.
    """
    decoded = _decode(data, declared)
    if "\0" in decoded.text:
        raise Undecodable(f"binary data: the text holds NUL characters (read as {decoded.encoding})")
    as_utf8 = data if decoded.encoding == "utf-8" else _utf8(decoded)
    controls = len(as_utf8) - len(as_utf8.translate(None, _CONTROLS))
    if controls > len(as_utf8) * _MAX_CONTROL_SHARE:
        raise Undecodable(f"binary data: {controls} of {len(as_utf8)} bytes are control characters")
    return decoded


def _decode(data: bytes, declared: str | None) -> Decoded:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _strict(data[len(bom) :], encoding, "as its byte order mark says")
    if declared is not None:
        return _strict(data, declared, "as declared")
    try:
        return Decoded(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        return _detected(data)


def _strict(data: bytes, encoding: str, why: str) -> Decoded:
    try:
        return Decoded(data.decode(encoding), codecs.lookup(encoding).name)
    except LookupError as error:
        raise Undecodable(f"{encoding!r} {why}, but that is no known text encoding") from error
    except ValueError as error:
        raise Undecodable(f"not {encoding} {why}: {error}") from error


def _detected(data: bytes) -> Decoded:
    if b"\0" in data:
        raise Undecodable("binary data: NUL bytes, no byte order mark, and not UTF-8")
    matches = charset_normalizer.from_bytes(data)
    best = matches.best()
    if best is None:
        raise Undecodable("not UTF-8, and no other encoding is likely; declare the encoding or save as UTF-8")
    # Italian, French or German is often as plausible in cp1250 or cp1258, and a tie then goes to the wrong one
    # ("societŕ"). Of equals, the code page that Windows used in Western Europe is by far the likeliest.
    tied = {name for match in matches if match.chaos <= best.chaos for name in match.could_be_from_charset}
    return _strict(data, "cp1252" if "cp1252" in tied else best.encoding, "as detected")


def _utf8(decoded: Decoded) -> bytes:
    try:
        return decoded.text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Undecodable(f"the text holds lone surrogates (read as {decoded.encoding})") from error


def normalise(text: str) -> str:
    """Return ``text`` with CRLF and bare CR turned into LF, in Unicode NFC. Nothing else changes.

    No-break spaces, zero-width characters, full-width forms, trailing blanks and front matter stay.
    ``normalise(normalise(t)) == normalise(t)``.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", text)


# The line after the opening one must be neither blank nor prose, else ``---`` is a thematic break: it is a
# key, a comment, or already the closing line (Jekyll's empty front matter).
_FRONT_MATTER = re.compile(
    r"---[ \t]*\n"
    r"(?:(?:[ \t]*\#[^\n]*\n)*[\w\"'][^\n:]*:(?:[ \t][^\n]*)?\n(?:[^\n]*\n)*?)?"
    r"(?:---|\.\.\.)[ \t]*(?:\n|\Z)",
)


def front_matter_end(text: str) -> int:
    """Return the offset after the front matter's closing line and its line break; 0 where there is none.

    Front matter opens with ``---`` as the very first line and closes with ``---`` or ``...``. A thematic
    break at the top, that is ``---`` followed by a blank line or by prose, opens none.
    """
    if not text.startswith("---"):
        return 0
    match = _FRONT_MATTER.match(text, 0, min(len(text), _MAX_FRONT_MATTER))
    return match.end() if match else 0


def front_matter(text: str) -> dict[str, str]:
    """Return the front matter's top-level scalars, as written: ``version: 1.10`` gives ``"1.10"``.

    Lists and mappings are left out. Bad YAML gives ``{}``; this never raises.
    """
    end = front_matter_end(text)
    if not end:
        return {}
    body = "\n".join(text[:end].rstrip().split("\n")[1:-1])
    try:
        # BaseLoader builds strings, lists and dicts only, without merging: shared aliases stay shared, so
        # that a "billion laughs" file costs nothing.
        loaded = yaml.load(body, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    if not isinstance(loaded, dict):
        return {}
    return {key: value for key, value in loaded.items() if isinstance(key, str) and isinstance(value, str)}
