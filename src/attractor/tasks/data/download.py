"""One file from the network: resumed where it broke off, checked, and put in place at once."""

import http.client
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path

from attractor.errors import InputError, RunError
from attractor.files import explained
from attractor.tasks.data.catalogue import File
from attractor.tasks.data.intact import fault

CHUNK = 1 << 16

Progress = Callable[[str, int, int | None], None]
"""Called with the path of a file, the bytes so far, and all its bytes if that is known."""


class UnavailableError(Exception):
    """An address did not give the file; `final` when asking it again would not help."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


def download(
    file: File,
    addresses: Iterable[str],
    target: Path,
    *,
    progress: Progress,
    timeout: float,
    tries: int,
) -> None:
    """Fetch a file to `target`, from the first address that gives it as published.

    What has arrived waits beside the target as ``.part``, and the next try, or the next call,
    asks only for the rest. The target appears when it is complete and its sum is right.

    Args:
        file: what to fetch.
        addresses: full addresses of the file, tried in turn.
        target: where it goes.
        progress: told of every piece that arrives.
        timeout: seconds without a byte after which a connection counts as stalled.
        tries: connections to each address before the next is tried.
    """
    part = target.with_name(target.name + ".part")
    reasons: list[str] = []
    for address in addresses:
        for _ in range(tries):
            resumed = part.exists()
            try:
                receive(file, address, part, progress, timeout)
            except UnavailableError as unavailable:
                reasons.append(f"{address} {unavailable}")
                if unavailable.final:
                    break
                continue
            wrong = fault(part, file)
            if wrong is None:
                os.replace(part, target)
                return
            part.unlink()
            reasons.append(f"{address} gave a file that was deleted, as {wrong}")
            if not resumed:
                break
    kept = f" What has arrived is kept in {part} and will be resumed." if part.exists() else ""
    raise RunError(
        f"expected to fetch {file.path}, but {'; '.join(dict.fromkeys(reasons))}.{kept} "
        f"Check the connection and try again, or put the file at {target} yourself."
    )


def receive(file: File, address: str, part: Path, progress: Progress, timeout: float) -> None:
    """Bring `part` to its full length, from where it ends."""
    have = part.stat().st_size if part.exists() else 0
    if have and have == file.size:
        return
    with connect(address, have, timeout) as response:
        if response.status == http.client.PARTIAL_CONTENT:
            piece = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
            if piece is None or int(piece[1]) != have:
                part.unlink(missing_ok=True)
                raise UnavailableError("sent another piece than was asked for")
        else:
            have = 0
        length = response.headers.get("Content-Length", "")
        total = file.size or (have + int(length) if length.isdecimal() else None)
        progress(file.path, have, total)
        with explained(part, "--data"), open(part, "ab" if have else "wb") as out:
            while chunk := read(response):
                out.write(chunk)
                have += len(chunk)
                progress(file.path, have, total)
                if total is not None and have > total:
                    break
            out.flush()
            os.fsync(out.fileno())
    if total is not None and have < total:
        raise UnavailableError(f"broke off after {have:,} of {total:,} bytes")


def connect(address: str, start: int, timeout: float) -> http.client.HTTPResponse:
    """Ask for a file from a byte on; the server may send all of it nevertheless."""
    if not address.startswith(("http://", "https://")):
        raise InputError(
            f"expected an address that starts with http:// or https://, but got {address!r}. "
            "Correct it in the catalogue."
        )
    headers = {"User-Agent": "attractor", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 - checked above
    try:
        response: http.client.HTTPResponse = urllib.request.urlopen(  # noqa: S310 - likewise
            request, timeout=timeout
        )
    except urllib.error.HTTPError as error:
        error.close()
        if start and error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            # what has arrived is longer than what is published there, so it is of another file
            return connect(address, 0, timeout)
        reason = f"answered {error.code} {error.reason}"
        raise UnavailableError(
            reason, final=error.code < http.client.INTERNAL_SERVER_ERROR
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise UnavailableError(explain(error, "could not be reached")) from error
    return response


def read(response: http.client.HTTPResponse) -> bytes:
    """What has arrived since the last call, or nothing at the end."""
    try:
        return response.read1(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise UnavailableError(explain(error, "broke off")) from error


def explain(error: Exception, what: str) -> str:
    """A failure of the network in a few words."""
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return "stalled"
    return f"{what} ({cause})"
