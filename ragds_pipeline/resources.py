"""The project as a Dagster resource: settings, places of files, and the door to the model.

What belongs here: what every stage's assets need of their surroundings. What does not: anything of a single stage.
https://docs.dagster.io/guides/build/external-resources
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import dagster as dg

from ragds_pipeline.claude import Claude, open_claude
from ragds_pipeline.claude.progress import Progress
from ragds_pipeline.config import ClaudeSettings, Settings, load_settings
from ragds_pipeline.run_processes import alone
from ragds_pipeline.storage.tables import TableFile

kb_revisions = dg.DynamicPartitionsDefinition(name="kb_revisions")
"""One partition a revision of the KB, keyed by its source version; the same for every asset. Documents are never
partitions: unchanged ones cost nothing because replies and tables are found by content (DESIGN.md 7)."""

claude_retries = dg.RetryPolicy(max_retries=2, delay=10, backoff=dg.Backoff.EXPONENTIAL)
"""For steps that ask Claude: what fails in passing (a locked database, a full disk) is tried again; what was paid is in
the ledger. What a person must mend is a ``dg.Failure`` without retries. A failed call is no failed step: ``claude``
retries calls, and a call that is given up is a drop with a reason."""

TABLES = "tables"
"""Folder below the data folder that holds the assets' tables."""


class Project(dg.ConfigurableResource):  # type: ignore[type-arg]
    """One project: its ``ragds.yaml`` and all that hangs on it."""

    config_file: str
    """Path of ``ragds.yaml``."""
    backend: str | None = None
    """Overrides ``claude.backend`` for a run: ``api``, ``batch`` or ``file``."""

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Self]:
        """Keep other runs on the same revision waiting while this one works; see ``run_processes``."""
        if context.run is None or context.instance is None:  # a sensor's tick
            yield self
            return
        with alone(context.instance, context.run, self.settings().data_dir):
            yield self

    def settings(self) -> Settings:
        """Return the settings; raise ConfigError where they cannot be used."""
        settings = load_settings(Path(self.config_file))
        if self.backend is None:
            return settings
        changed = {**settings.claude.model_dump(), "backend": self.backend}
        return settings.model_copy(update={"claude": ClaudeSettings.model_validate(changed)})

    def claude(self, context: dg.AssetExecutionContext, settings: Settings) -> Claude:
        """Return the door to the model, with progress in the run's event log."""

        def tell(progress: Progress) -> None:
            context.log.info(str(progress))

        partition = context.partition_key if context.has_partition_key else ""
        return open_claude(settings, context.run.run_id, tell, partition, context.log.info)

    def staged(self, context: dg.AssetExecutionContext, asset: str) -> Path:
        """Return where to write a table of ``asset`` before the I/O manager puts it in place."""
        folder = self.settings().data_dir / TABLES / asset
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f".{context.partition_key}.{context.run.run_id}.part"

    def earlier(self, context: dg.AssetExecutionContext, asset: str) -> TableFile | None:
        """Return the table of ``asset`` to take unchanged rows from: this revision's, else the newest there is."""
        folder = self.settings().data_dir / TABLES / asset
        own = folder / f"{context.partition_key}.parquet"
        if own.exists():
            return TableFile(own)
        others = sorted(folder.glob("*.parquet"), key=lambda path: (path.stat().st_mtime_ns, path.name))
        return TableFile(others[-1]) if others else None


def earlier_pair(
    project: Project, context: dg.AssetExecutionContext, first: str, second: str
) -> tuple[TableFile, TableFile] | None:
    """Return the earlier tables of two assets that are made together, of one and the same revision."""
    one = project.earlier(context, first)
    if one is None:
        return None
    other = TableFile(one.path.parent.parent / second / one.path.name)
    return (one, other) if other.path.exists() else None
