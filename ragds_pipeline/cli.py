"""``ragds``: the pipeline from the command line. Everything here can also be done in the Dagster UI."""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ragds_pipeline.config import ConfigError, Settings
from ragds_pipeline.storage.files import write_text

if TYPE_CHECKING:
    import dagster as dg

    from ragds_pipeline.claude.ledger import Ledger
    from ragds_pipeline.runs import RunOutcome

HOST = "127.0.0.1"

WORKSPACE = """load_from:
  - python_module:
      module_name: ragds_pipeline.definitions
      location_name: ragds_pipeline
"""
"""The same as workspace.yaml in the repository; written out so that the UI also opens a project elsewhere. The name of
the location must stay: Dagster files the state of schedules and sensors under it."""


RUN_START_S = "300"
"""Seconds that a run may take to start before Dagster gives it up. Its own 60 are too few for a new process to import
what it needs on a busy machine: the run is then marked as failed although its process goes on."""

KINDS = ("task", "model", "backend", "run", "revision", "prompt", "day")
"""What ``ragds ledger --sum`` adds up by; here so that ``--help`` imports nothing large."""


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
    funnel = add("funnel", _funnel, "Show what each stage let through and dropped, whole or in parts, with examples.")
    funnel.add_argument("--by", choices=("document", "type", "language", "reason"), help="in which parts")
    story = add("why", _why, "Tell the whole story of one draft, candidate or golden item, by its id.")
    story.add_argument("id", help="d-..., c-..., g-... or n-...")
    for command in (sheet, freeze, status, story, funnel):
        command.add_argument("--version", default="", help="the revision (default: what the KB folder holds now)")
    compare = add("compare", _compare, "Tell what differs between two frozen sets.")
    compare.add_argument(
        "before", nargs="?", default="", help="e.g. 2026-10-01/snapshot-0001 (default: the last but one)"
    )
    compare.add_argument("now", nargs="?", default="", help="default: the last one")
    probes = add("probes", _probes, "Ask the judges about labelled probes and report how far they can be trusted.")
    probes.add_argument("--judge", action="append", default=[], help="ambiguity, closed_book, support or class (all)")
    probes.add_argument("--model", default="", help="the model that judges (default: claude.models.judge)")
    probes.add_argument("--out", type=Path, help="write the report to this file as well: Markdown, or .json")
    verify = add("verify", _verify, "Check that the files of frozen snapshots are as they were frozen.")
    verify.add_argument("snapshots", nargs="*", type=Path, help="snapshot folders (default: all)")
    checks = add(
        "checks", _checks, "Check the golden set against the documents as they are now; 1 where a check fails."
    )
    checks.add_argument("--snapshot", type=Path, help="snapshot folder (default: the one that was frozen last)")
    checks.add_argument("--junit", type=Path, metavar="FILE", help="also write the outcomes as JUnit XML")
    checks.add_argument("--sarif", type=Path, metavar="FILE", help="also write the findings as SARIF 2.1.0")
    checks.add_argument(
        "--github", action="store_true", help="also print annotations (default where GITHUB_ACTIONS is set)"
    )
    backfill = add("backfill", _backfill, "Archive an old state of the KB as a revision with a partition of its own.")
    state = backfill.add_mutually_exclusive_group(required=True)
    state.add_argument("--from-folder", type=Path, metavar="PATH", help="a folder that holds it")
    state.add_argument("--git-ref", metavar="REF", help="a commit, tag or branch that holds it; nothing is checked out")
    backfill.add_argument("--repo", type=Path, help="the git repository (default: the one that holds the KB folder)")
    backfill.add_argument("--path", help="the KB's folder in the repository (default: where the KB folder is in it)")
    backfill.add_argument("--run", action="store_true", help="also run it up to the review sheet")
    ledger = add("ledger", _ledger, "Write every request and reply of the ledger as JSON lines, or sums of them.")
    ledger.add_argument("--out", type=Path, help="file (default: standard output)")
    ledger.add_argument(
        "--sum", nargs="+", choices=KINDS, metavar="BY", default=[], help=f"a table of sums by: {', '.join(KINDS)}"
    )
    batches = add("batches", _batches, "List message batches whose results have not all been collected.")
    batches.add_argument("action", nargs="?", choices=["forget"], help="forget: free its requests to be paid again")
    batches.add_argument("batch", nargs="?", default="", help="id of the batch to forget")
    batches.add_argument("--yes", action="store_true", help="really: what that batch answers is paid for and lost")
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
    from ragds_pipeline.demo import demo

    config, settings, instance = _open(arguments)

    def run(job: str, version: str, **options: Any) -> None:
        _must(_execute(config, job, version, instance, launched_by="ragds demo", **options))

    for version in demo(settings, instance, run, lambda line: print(line, flush=True), _sheets()):
        print()
        _show(settings, version)


def _run(arguments: argparse.Namespace) -> None:
    from ragds_pipeline import runs

    config, settings, instance = _open(arguments)
    version = runs.register_current(settings, instance)
    print(f"revision {version}", flush=True)
    _must(_execute(config, "revision_job", version, instance, launched_by="ragds run"))
    _show(settings, version)


def _execute(config: Path, job: str, version: str, instance: dg.DagsterInstance, **options: Any) -> RunOutcome:
    """Run a job, showing on standard error how far it is."""
    from ragds_pipeline import runs
    from ragds_pipeline.claude.progress import AUDIENCE
    from ragds_pipeline.terminal import Terminal

    with Terminal(sys.stderr) as terminal, AUDIENCE.joined_by(terminal):
        return runs.execute(config, job, version, instance, **options)


def _import(arguments: argparse.Namespace) -> None:
    from ragds_pipeline.demo import decisions_config

    config, settings, instance = _open(arguments)
    absent = [str(path) for path in arguments.sheets if not path.is_file()]
    if absent:
        raise Stop(f"no such file: {', '.join(absent)}")
    version = _version(arguments, settings, instance)
    ops = decisions_config([path.resolve() for path in arguments.sheets], arguments.reviewer)
    outcome = _execute(config, "freeze_job", version, instance, ops=ops, selection=["review_decisions"])
    facts = outcome.metadata.get("review_decisions", {})
    for name in ("sheets", "problems"):
        print(f"{name}:\n{facts.get(name, '(none)')}\n")
    if outcome.failed_checks:
        raise Stop("sheets with errors were not imported; correct the lines above and import them again")
    _must(outcome)
    print(f"decided: {facts.get('decided')} of {facts.get('candidates')}; freeze with: ragds freeze")
    _must(_execute(config, "revision_job", version, instance, selection=_sheets()))


def _freeze(arguments: argparse.Namespace) -> None:

    config, settings, instance = _open(arguments)
    version = _version(arguments, settings, instance)
    _must(_execute(config, "freeze_job", version, instance))
    _show(settings, version)


def _status(arguments: argparse.Namespace) -> None:
    from ragds_pipeline.config import load_settings
    from ragds_pipeline.kb.assets import folder_revision

    settings = load_settings(_config_file(arguments))
    _show(settings, arguments.version or folder_revision(settings).source_version)


def _funnel(arguments: argparse.Namespace) -> None:
    from ragds_pipeline.config import load_settings
    from ragds_pipeline.funnel_view import bars, in_parts, view
    from ragds_pipeline.kb.assets import folder_revision

    settings = load_settings(_config_file(arguments))
    version = arguments.version or folder_revision(settings).source_version
    found = view(settings, version)
    if not any(each.came_in for each in found.steps):
        raise Stop(f"revision {version} has no questions yet: ragds run")
    print(f"Funnel of revision {version}")
    print("\n".join(in_parts(found, arguments.by) if arguments.by else bars(found.steps)))


def _why(arguments: argparse.Namespace) -> None:
    from ragds_pipeline.config import load_settings
    from ragds_pipeline.kb.assets import folder_revision
    from ragds_pipeline.why import UnknownId, why

    settings = load_settings(_config_file(arguments))
    try:
        print(why(settings, arguments.version or folder_revision(settings).source_version, arguments.id))
    except UnknownId as error:
        raise Stop(str(error)) from error


def _compare(arguments: argparse.Namespace) -> None:
    from ragds_pipeline.config import load_settings
    from ragds_pipeline.golden.changelog import as_markdown
    from ragds_pipeline.golden.comparison import compared
    from ragds_pipeline.golden.snapshot import SnapshotDamaged

    root = load_settings(_config_file(arguments)).data_dir / "golden"
    try:
        before, now, rows = compared(root, arguments.before, arguments.now)
    except (LookupError, SnapshotDamaged) as error:
        raise Stop(str(error)) from error
    print(as_markdown(rows, before, now))


def _probes(arguments: argparse.Namespace) -> None:
    from ragds_pipeline.calibration.probe_run import ProbesStopped, run_probes
    from ragds_pipeline.config import load_settings

    settings = load_settings(_config_file(arguments))
    try:
        report = run_probes(settings, arguments.judge, arguments.model, lambda line: print(line, flush=True))
    except ProbesStopped as error:
        raise Stop(str(error)) from error
    print(report.markdown)
    if arguments.out:
        write_text(arguments.out, report.json if arguments.out.suffix == ".json" else report.markdown)
        print(f"written to {arguments.out}")


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


def _must(outcome: RunOutcome) -> None:
    for line in outcome.warnings:
        print(f"warning: {line}", file=sys.stderr)
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


def _checks(arguments: argparse.Namespace) -> None:
    from ragds_pipeline.checking import ChecksFailed, run_checks
    from ragds_pipeline.golden import report_forms as forms

    config, settings, instance = _open(arguments)
    try:
        outcomes = run_checks(config, instance, arguments.snapshot.resolve() if arguments.snapshot else None)
    except ChecksFailed as error:
        raise Stop(str(error)) from error
    places = forms.Places.of(settings.kb_dir, config, Path.cwd())
    print(forms.table(outcomes, places), flush=True)
    for path, form in ((arguments.junit, forms.junit), (arguments.sarif, forms.sarif)):
        if path is not None:
            write_text(path.resolve(), form(outcomes, places))
    if arguments.github or os.environ.get("GITHUB_ACTIONS") == "true":
        print(*forms.workflow_commands(outcomes, places), sep="\n", flush=True)
    if forms.failed(outcomes):
        raise Stop("a check failed; what it found is listed above with its file and line")


def _backfill(arguments: argparse.Namespace) -> None:
    from ragds_pipeline import backfill, runs
    from ragds_pipeline.kb.git_state import GitFailed

    config, settings, instance = _open(arguments)
    if arguments.from_folder and (arguments.repo or arguments.path):
        raise Stop("--repo and --path go with --git-ref")
    try:
        if arguments.from_folder:
            done = backfill.from_folder(settings, instance, arguments.from_folder.resolve())
        else:
            repository, path = _in_repository(arguments, settings)
            done = backfill.from_git(settings, instance, arguments.git_ref, repository, path)
    except (GitFailed, backfill.BackfillFailed) as error:
        raise Stop(str(error)) from error
    state = "archived before" if done.known else "archived now"
    print(f"{done.origin}: revision {done.source_version}, {done.documents} documents, {state}; it is a partition")
    if not arguments.run:
        print(f"run it with: ragds backfill ... --run, or materialise revision_job for {done.source_version} in the UI")
        return
    _must(runs.execute(config, "revision_job", done.source_version, instance, launched_by="ragds backfill"))
    _show(settings, done.source_version)


def _in_repository(arguments: argparse.Namespace, settings: Settings) -> tuple[Path, str]:
    """Return the git repository and the KB's folder in it, as given or as found from the KB folder."""
    if arguments.repo and arguments.path is None:
        raise Stop("--repo needs --path: the KB's folder in that repository, such as kb or docs")
    if arguments.repo:
        return arguments.repo.resolve(), arguments.path
    kb = settings.kb_dir
    root = next((folder for folder in (kb, *kb.parents) if (folder / ".git").exists()), None)
    if root is None:
        raise Stop(f"{kb} is in no git repository: name one with --repo and --path")
    return root, arguments.path if arguments.path is not None else kb.relative_to(root).as_posix()


def _ledger(arguments: argparse.Namespace) -> None:
    from ragds_pipeline.ledger_told import sums_by

    with _opened_ledger(arguments) as ledger:
        out = arguments.out.open("w", encoding="utf-8", newline="\n") if arguments.out else sys.stdout
        try:
            if arguments.sum:
                out.write(sums_by(ledger, arguments.sum) + "\n")
                return
            for row in ledger.rows():
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
        finally:
            if arguments.out:
                out.close()


def _batches(arguments: argparse.Namespace) -> None:
    from ragds_pipeline.claude.batch_store import BatchStore
    from ragds_pipeline.ledger_told import batches_told

    with _opened_ledger(arguments) as ledger:
        store = BatchStore(ledger.engine)
        if arguments.action != "forget":
            print(batches_told(store.open_batches()))
            return
        known = {name for batch in store.open_batches() for name in (batch.batch_id, batch.intent)}
        if arguments.batch not in known:
            raise Stop(f"there is no open batch {arguments.batch or '(no id given)'}; see: ragds batches")
        if not arguments.yes:
            raise Stop(
                "its requests would be paid again, and what it answers would be lost; if that is meant, add --yes"
            )
        freed = store.forget(arguments.batch)
        print(f"{arguments.batch} is forgotten: {freed} requests may be asked, and paid, again")


@contextmanager
def _opened_ledger(arguments: argparse.Namespace) -> Iterator[Ledger]:
    from ragds_pipeline.claude.ledger import Ledger, ledger_url
    from ragds_pipeline.config import load_settings

    ledger = Ledger(ledger_url(load_settings(_config_file(arguments))))
    try:
        yield ledger
    finally:
        ledger.close()


def _ui(arguments: argparse.Namespace) -> None:
    from ragds_pipeline import runs
    from ragds_pipeline.run_processes import sweep

    _, settings, instance = _open(arguments)
    if _is_taken(arguments.port):
        raise Stop(f"port {arguments.port} is in use, perhaps by this UI in another terminal: take another with --port")
    sweep(instance)
    print(f"revision {runs.register_current(settings, instance)} is registered as a partition")
    # Both run from the project's folder with the project's own state; nothing listens beyond this machine.
    environment = {"DAGSTER_GRPC_TIMEOUT_SECONDS": RUN_START_S, **os.environ}
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
            _end(process)


def _is_taken(port: int) -> bool:
    # Asked first: the webserver itself would notice only after a minute of imports.
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return True
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process has ended. One that was asked while it was starting goes on; it would keep the port."""
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _wait_until_up(url: str, processes: Sequence[subprocess.Popen[bytes]]) -> None:
    # On a busy machine the imports alone take more than a minute; a process that died ends the wait at once.
    until = time.monotonic() + 300
    while time.monotonic() < until:
        if any(process.poll() is not None for process in processes):
            raise Stop("the Dagster UI did not start; its last lines above say why (is the port in use?)")
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.25)
    raise Stop(f"the Dagster UI did not answer at {url} within five minutes")


if __name__ == "__main__":
    sys.exit(main())
