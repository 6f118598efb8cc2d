"""Which batches exist: making them, and finding out about those whose creation got no clear answer.

The order of commits is what keeps a request out of a second batch: intent, creation, id. See ``batch_find`` for how an
unclear creation is settled.
"""

from __future__ import annotations

import contextlib
import time

import anthropic

from ragds_pipeline.claude.backends.batch_create import Group, Refused, create, newest_batch
from ragds_pipeline.claude.backends.batch_failures import PASSING, failure_of
from ragds_pipeline.claude.backends.batch_find import find
from ragds_pipeline.claude.backends.batch_progress import Told
from ragds_pipeline.claude.batch_store import BatchStore, Intent
from ragds_pipeline.claude.requests import Failure
from ragds_pipeline.config import ClaudeSettings

LEASE_TIMEOUTS = 4
"""How many timeouts of a single call an intent is held by a process that cannot be seen to have died: sending a large
batch is several slow steps, each with its own timeout."""


class Existence:
    """Makes batches for one run, and settles what is unclear about them."""

    def __init__(self, client: anthropic.Anthropic, store: BatchStore, settings: ClaudeSettings, told: Told) -> None:
        self._client, self._store, self._settings, self._told = client, store, settings, told
        self.server = str(client.base_url).rstrip("/")
        self._lease_s = LEASE_TIMEOUTS * settings.timeout_s + settings.batch_settle_s
        self._unsettled: dict[str, float] = {}
        """Intents that this run has in hand, with the time since when their batch must show itself."""
        self._in_vain = 0
        self._last = ""

    @property
    def unsettled(self) -> bool:
        """Whether the existence of some batch is still to be found out by this run."""
        return bool(self._unsettled)

    def make(self, group: Group) -> Failure | None:
        """Commit the intent, ask for the batch, commit its id.

        Returns:
            A failure of all its requests. None does not say that there is a batch: the store does, at the next look.
        """
        keys = [request.key for request in group.requests]
        try:
            newest = newest_batch(self._client)
        except PASSING as error:
            return failure_of("", error)
        intent = self._store.open_intent(keys, self.server, newest, self._lease_s)
        if intent is None:
            return None  # another process has one of them: the next look follows it and groups the rest anew
        self._unsettled[intent.id] = time.monotonic()
        made = create(self._client, group)
        if isinstance(made, str):
            self._in_vain = 0
            self._told.created(made, len(keys))
            self._settle(intent, made)
        elif isinstance(made, Refused):
            self._drop(intent)
            return self._refused(made)
        else:
            self._unsettled[intent.id] = time.monotonic()
            self._in_vain += 1
            self._last = made.failure.detail
            self._told.unclear(len(keys), self._last)
        return None

    def find_out(self, intent: Intent) -> Failure | bool:
        """Go on finding out whether an intent's batch exists.

        Returns:
            Whether anything moved on; a failure of all its requests if creations fail again and again.

        Raises:
            anthropic.AnthropicError, httpx2.HTTPError: Nothing was learnt.
        """
        if intent.id not in self._unsettled:
            if not self._store.take_over(intent, self._lease_s):
                return False
            # The owner may have died a moment ago, with its request still on the way.
            self._unsettled[intent.id] = time.monotonic()
        self._store.extend(intent, self._lease_s)
        keys = self._store.keys(intent.id)
        search = find(self._client, intent, keys, self._store.known_batches(self.server))
        if search.batch_id is not None:
            self._told.found(search.batch_id, intent.size)
            self._settle(intent, search.batch_id)
            return True
        if search.suspects:
            self._told.suspects(search.suspects, intent.size)
            return False
        if time.monotonic() - self._unsettled[intent.id] < self._settings.batch_settle_s:
            return False
        self._drop(intent)
        if self._in_vain > self._settings.max_retries:
            return failure_of("", anthropic.AnthropicError(f"no batch could be made: {self._last}"))
        return True

    def let_go(self) -> None:
        """Leave what is not settled to the next run."""
        for intent_id in list(self._unsettled):
            if (intent := self._store.intent(intent_id)) is not None:
                self._store.let_go(intent)

    def _settle(self, intent: Intent, batch_id: str) -> None:
        self._store.created(intent, batch_id)
        self._unsettled.pop(intent.id, None)
        now = self._store.intent(intent.id)
        if now is None or now.batch_id != batch_id:
            # This process was away for longer than any lease: another concluded that there is no batch and made one.
            with contextlib.suppress(*PASSING):
                self._client.messages.batches.cancel(batch_id)

    def _drop(self, intent: Intent) -> None:
        self._store.void(intent)
        self._unsettled.pop(intent.id, None)

    def _refused(self, refused: Refused) -> Failure | None:
        """Wait where a creation was only too early; the next look makes it again."""
        self._in_vain += 1
        longest = self._settings.batch_poll_max_s
        if refused.wait_s is None or refused.wait_s > longest or self._in_vain > self._settings.max_retries:
            return refused.failure
        time.sleep(max(refused.wait_s, min(self._settings.batch_poll_s, longest)))
        return None
