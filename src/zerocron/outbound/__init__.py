"""The only door to other people's servers: address guard, deadlines, size caps, redirects, honest failures.

Rules of this room:

- `send` makes one request and never a second one by itself: a repeat without an execution row breaks the promise of
  section A.2. aiohttp's session would silently repeat an idempotent request whose kept-alive connection died, so
  requests do not go through a session. Redirects are followed only when the request asks for it, and each hop is told
  in the outcome.
- `send` never raises for what a target, a network or a resolver does: such things are a Failure with a stable kind.
  Cancellation passes through, and so do our own mistakes.
- Every address is judged where its socket is made (`guard`), so names, literals, redirects and second answers of the
  resolver all pass the same gate and nothing is looked up between the judgement and the dial.
- A pool of connections belongs to one allow list: never share an Outbound between parties with different ones.
- Everything is bounded: time by `timeout_seconds` over all hops, head and body by constants, memory by reading in
  blocks.

| file | owns |
|---|---|
| `door` | Outbound: the pool of connections, and the way of a request through the others |
| `guard` | which address a socket may be made for |
| `resolver` | names to addresses, in threads of our own |
| `dialling` | a bare connection for what is not HTTP, past the same gate |
| `wire` | a request on the wire, byte for byte what was asked |
| `protocol` | the client's end of a connection: what aiohttp's parser leaves open |
| `reading` | an answer as it comes in, within its caps |
| `redirects` | what the next request of a chain is; pure |
| `failures` | which kind a fault is, and its sentence |
| `probe` | the marks a request leaves on its way |

Of aiohttp it takes the connections (name look-ups, happy eyeballs, TLS, keep-alive: `TCPConnector.connect`) and the
parser (`ResponseHandler`). Its session stands between the two for programs that want cookies, proxies and guesses; it
cost more than half of a request's CPU, and is left out. Private names this stands on: `BaseConnector._factory`,
`_create_connection` and `_release_waiter`, and what `protocol` overrides and looks at (`_payload`, `_exception`,
`_buffer`). `start` refuses to run without the first; for each there is a test in tests/outbound that fails when it
stops working, so an upgrade of aiohttp is safe when they pass.
"""

from __future__ import annotations

from zerocron.core.addresses import AllowList, OwnEndpoint, parse_allow
from zerocron.core.exchange import ERROR_KINDS, Failure, Hop, Outcome, Request, Response, Timings
from zerocron.core.requests import check_header, check_method, check_url
from zerocron.outbound.door import Outbound

__all__ = [
    "ERROR_KINDS",
    "AllowList",
    "Failure",
    "Hop",
    "Outbound",
    "Outcome",
    "OwnEndpoint",
    "Request",
    "Response",
    "Timings",
    "check_header",
    "check_method",
    "check_url",
    "parse_allow",
]
