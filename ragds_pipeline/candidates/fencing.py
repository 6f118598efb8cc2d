"""Texts inside a request, marked as material: nothing in them can pass for an instruction or close its own mark."""

from __future__ import annotations

import hashlib
import json


def fence(kind: str, body: str, **attributes: str) -> str:
    """Return ``body`` between tags whose name carries a hash of it.

    No text can close its own tag: it would have to contain its own hash. Attributes are JSON strings.
    """
    tag = f"{kind}-{hashlib.sha256(body.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"
    told = "".join(f" {name}={json.dumps(value, ensure_ascii=False)}" for name, value in attributes.items())
    return f"<{tag}{told}>\n{body}\n</{tag}>"
