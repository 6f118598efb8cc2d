"""The docstrings under the fields of a dataclass, read from its source: the one place where a column is explained."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Any


def field_docs(record: type[Any]) -> dict[str, str]:
    """Return the docstring of each field that has one; empty where the source is not at hand."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(record)))
    except (OSError, TypeError):
        return {}
    body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
    docs = {}
    for field, after in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
            value = after.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                docs[field.target.id] = " ".join(value.value.replace("``", "").split())
    return docs
