"""``ragds``: the pipeline from the command line. Everything here can also be done in the Dagster UI."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ragds_pipeline.config import ConfigError, Settings
from ragds_pipeline.storage.files import write_text

if TYPE_CHECKING:
    import dagster as dg

    from ragds_pipeline.runs import RunOutcome

HOST = "127.0.0.1"

WORKSPACE = """load_from:
  - python_module:
      module_name: ragds_pipeline.definitions
      location_name: ragds_pipeline
"""
"""The same as workspace.yaml in the repository; written out so that the UI also opens a project elsewhere. The name of
the location must stay: Dagster files the state of schedules and sensors under it."""


class Stop(Exception):
    """Ends the command with exit code 1 and a message for the person who can act."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 stopped with a message, 2 used wrongly."""
    if argv is None and sys.getfilesystemencoding() != "utf-8":
        _restart_in_utf8()
    for stream in (sys.stdout, sys.stderr):
        _write_utf8(stream)
    arguments = _parser().parse_args(argv)
    try:
        arguments.command(arguments)
    except (Stop, ConfigError) as error:
        print(f"ragds: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        from ragds_pipeline.kb.scan import KbMissing

        if isinstance(error, KbMissing):
            print(f"ragds: {error}", file=sys.stderr)
            return 1
        raise
    return 0


def _restart_in_utf8() -> None:
    """Start this command again in Python's UTF-8 mode; it does not return.

    In the C locale file names would be read as ASCII, and a document with a Japanese name would drop out of the KB.
    """
    os.environ["PYTHONUTF8"] = "1"
    os.execv(sys.executable, [sys.executable, "-m", "ragds_pipeline.cli", *sys.argv[1:]])  # noqa: S606


def _write_utf8(stream: TextIO) -> None:
    # In the C locale Python writes ASCII and would die on the first quoted question that is not English.
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="replace")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ragds", description=__doc__)
    parser.add_argument("--config", default="ragds.yaml", help="the project's ragds.yaml (default: in this folder)")
    commands = parser.add_subparsers(required=True, metavar="command")

    def add(name: str, run: Callable[[argparse.Namespace], None], text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(command=run)
        return command

    add("demo", _demo, "Run the whole sample: documents, questions, filters, review, frozen golden set.")
    add("run", _run, "Register what the KB folder holds now and run it up to the review sheet.")
    sheet = add("import", _import, "Import returned review sheets; all of a sheet or nothing.")
    sheet.add_argument("sheets", nargs="+", type=Path, help="CSV or XLSX files")
    sheet.add_argument("--reviewer", default="", help="who decided (default: review.reviewer of ragds.yaml)")
    freeze = add("freeze", _freeze, "Freeze what has been decided into a snapshot; the checks must pass.")
    status = add("status", _status, "Show the funnel, cost and files of a revision.")
    story = add("why", _why, "Tell the whole story of one draft, candidate or golden item, by its id.")
    story.add_argument("id", help="d-..., c-..., g-... or n-...")
    for command in (sheet, freeze, status, story):
        command.add_argument("--version", default="", help="the revision (default: what the KB folder holds now)")
    verify = add("verify", _verify, "Check that the files of frozen snapshots are as they were frozen.")
    verify.add_argument("snapshots", nargs="*", type=Path, help="snapshot folders (default: all)")
    ledger = add("ledger", _ledger, "Write every request and reply of the ledger as JSON lines.")
    ledger.add_argument("--out", type=Path, help="file (default: standard output)")
    ui = add("ui", _ui, "Open the Dagster UI with its daemon on 127.0.0.1.")
    ui.add_argument("--port", type=int, default=3000)
    return parser


def _config_file(arguments: argparse.Namespace) -> Path:
    return Path(arguments.config).resolve()


def _open(arguments: argparse.Namespace) -> tuple[Path, Settings, dg.DagsterInstance]:
    from ragds_pipeline import runs
    from ragds_pipeline.config import load_settings

    config = _config_file(arguments)
    settings = load_settings(config)
    os.environ["RAGDS_CONFIG"] = str(config)
    return config, settings, runs.dagster_instance(settings)


def _demo(arguments: argparse.Namespace) -> None:
    from ragds_pipeline import runs

    config, settings, instance = _open(arguments)
    version = runs.register_current(settings, instance)
    print(f"1/3  documents, questions, filters ({version}) ...", flush=True)
    _must(runs.execute(config, "revision_job", version, instance))
    sheets = sorted(settings.path("data/recorded/decisions").glob("*.csv"))
    print(f"2/3  review: {len(sheets)} sheet(s) of recorded decisions ...", flush=True)
    print("3/3  checks, golden set ...", flush=True)
    _must(runs.execute(config, "freeze_job", version, instance, ops=_sheets_config(sheets, "")))
    _must(runs.execute(config, "revision_job", version, instance, selection=_sheets()))
    print()
    _show(settings, version)


def _run(arguments: argparse.Namespace) -> None:
    from ragds_pipeline import runs

    config, settings, instance = _open(arguments)
    version = runs.register_current(settings, instance)
    print(f"revision {version}", flush=True)
    _must(runs.execute(config, "revision_job", version, instance))
    _show(settings, version)


def _import(arguments: argparse.Namespace) -> None:
    from ragds_pipeline import runs

    config, settings, instance = _open(arguments)
    absent = [str(path) for path in arguments.sheets if not path.is_file()]
    if absent:
        raise Stop(f"no such file: {', '.join(absent)}")
    version = _version(arguments, settings, instance)
    ops = _sheets_config([path.resolve() for path in arguments.sheets], arguments.reviewer)
    outcome = runs.execute(config, "freeze_job", version, instance, ops=ops, selection=["review_decisions"])
    facts = outcome.metadata.get("review_decisions", {})
    for name in ("sheets", "problems"):
        print(f"{name}:\n{facts.get(name, '(none)')}\n")
    if outcome.failed_checks:
        raise Stop("sheets with errors were not imported; correct the lines above and import them again")
    _must(outcome)
    print(f"decided: {facts.get('decided')} of {facts.get('candidates')}; freeze with: ragds freeze")
    _must(runs.execute(config, "revision_job", version, instance, selection=_sheets()))


def _freeze(arguments: argparse.Namespace) -> None:
    from ragds_pipeline import runs

    config, settings, instance = _open(arguments)
    version = _version(arguments, settings, instance)
    _must(runs.execute(config, "freeze_job", version, instance))
    _show(settings, version)


def _status(arguments: argparse.Namespace) -> None:
    from ragds_pipeline.config import load_settings
    from ragds_pipeline.kb.assets import folder_revision

    settings = load_settings(_config_file(arguments))
    _show(settings, arguments.version or folder_revision(settings).source_version)


def _why(arguments: argparse.Namespace) -> None:
    from ragds_pipeline.config import load_settings
    from ragds_pipeline.kb.assets import folder_revision
    from ragds_pipeline.why import UnknownId, why

    settings = load_settings(_config_file(arguments))
    try:
        print(why(settings, arguments.version or folder_revision(settings).source_version, arguments.id))
    except UnknownId as error:
        raise Stop(str(error)) from error


def _version(arguments: argparse.Namespace, settings: Settings, instance: dg.DagsterInstance) -> str:
    """Return the revision that the command is about, registered as a partition."""
    from ragds_pipeline import runs

    if not arguments.version:
        return runs.register_current(settings, instance)
    try:
        return runs.register_version(settings, instance, arguments.version)
    except runs.UnknownVersion as error:
        raise Stop(str(error)) from error


def _sheets() -> Sequence[str]:
    """Return the assets that make the sheets anew."""
    from ragds_pipeline.definitions import SHEETS

    return SHEETS


def _sheets_config(sheets: Sequence[Path], reviewer: str) -> dict[str, object]:
    config = {"sheets": [str(path) for path in sheets], "reviewer": reviewer}
    return {"review_decisions": {"config": config}}


def _must(outcome: RunOutcome) -> None:
    if outcome.success and not outcome.failed_checks:
        return
    lines = [*outcome.errors, *(f"check failed: {line}" for line in outcome.failed_checks)]
    raise Stop(f"{outcome.job} stopped (run {outcome.run_id}):\n  " + "\n  ".join(lines))


def _show(settings: Settings, version: str) -> None:
    from ragds_pipeline.summary import summary

    print(summary(settings, version))


def _verify(arguments: argparse.Namespace) -> None:
    from ragds_pipeline.config import load_settings
    from ragds_pipeline.golden.snapshot import SnapshotDamaged, snapshots, verify

    root = load_settings(_config_file(arguments)).data_dir / "golden"
    paths = arguments.snapshots or [path for folder in sorted(root.glob("*/")) for path in snapshots(folder)]
    if not paths:
        raise Stop(f"no snapshot below {root}; make one with: ragds freeze")
    for path in paths:
        try:
            manifest = verify(path)
        except SnapshotDamaged as error:
            raise Stop(str(error)) from error
        print(f"{path}: {manifest['counts']['items']} items, {len(manifest['files'])} files, all as frozen")


def _ledger(arguments: argparse.Namespace) -> None:
    from ragds_pipeline.claude import open_claude
    from ragds_pipeline.config import load_settings

    claude = open_claude(load_settings(_config_file(arguments)))
    out = arguments.out.open("w", encoding="utf-8", newline="\n") if arguments.out else sys.stdout
    try:
        for row in claude.ledger.rows():
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    finally:
        if arguments.out:
            out.close()
        claude.close()


def _ui(arguments: argparse.Namespace) -> None:
    from ragds_pipeline import runs

    _, settings, instance = _open(arguments)
    print(f"revision {runs.register_current(settings, instance)} is registered as a partition")
    # Both run from the project's folder with the project's own state; nothing listens beyond this machine.
    environment = dict(os.environ)
    workspace = settings.data_dir / "dagster" / "workspace.yaml"
    write_text(workspace, WORKSPACE)
    commands = [
        [sys.executable, "-m", "dagster_webserver", "-h", HOST, "-p", str(arguments.port), "-w", str(workspace)],
        [sys.executable, "-m", "dagster._daemon", "run", "-w", str(workspace)],
    ]
    # A plain SIGTERM would end this process alone and leave the two behind with the port.
    signal.signal(signal.SIGTERM, _interrupt)
    processes = [subprocess.Popen(command, env=environment) for command in commands]  # noqa: S603
    try:
        _wait_until_up(f"http://{HOST}:{arguments.port}/server_info", processes)
        print(f"\nDagster UI: http://{HOST}:{arguments.port}  (Ctrl-C stops it)\n", flush=True)
        while all(process.poll() is None for process in processes):
            time.sleep(0.5)
        raise Stop("a Dagster process ended; its last lines above say why")
    except KeyboardInterrupt:
        pass
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _wait_until_up(url: str, processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for _ in range(240):
        if any(process.poll() is not None for process in processes):
            raise Stop("the Dagster UI did not start; its last lines above say why (is the port in use?)")
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.25)
    raise Stop(f"the Dagster UI did not answer at {url} within a minute")


if __name__ == "__main__":
    sys.exit(main())
