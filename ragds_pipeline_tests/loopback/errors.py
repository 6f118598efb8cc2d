"""The API's errors: the status, the type and the envelope the SDK turns into its exception classes.

No rule lives here that says *when* an error happens; that is `validation` (deserved) and `faults` (injected).
"""

from __future__ import annotations

from typing import Any

TYPE_OF_STATUS: dict[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "invalid_request_error",  # SDK 2.x lists no request_too_large; the class comes from the status
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class ApiError(Exception):
    """A request the server answers with an error body instead of a message."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str | None = None,  # the wire's own word
        error_code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type or TYPE_OF_STATUS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        self.error_code = error_code
        self.headers = dict(headers or {})

    def body(self, request_id: str) -> dict[str, Any]:
        """The envelope, the same over HTTP, in an SSE `error` event and in an errored batch item."""
        error: dict[str, Any] = {"type": self.type, "message": self.message}
        if self.error_code is not None:
            error["details"] = {"error_code": self.error_code}
        return {"type": "error", "error": error, "request_id": request_id}


def invalid(message: str, *, error_code: str | None = None) -> ApiError:
    """A 400 `invalid_request_error`."""
    return ApiError(400, message, error_code=error_code)
