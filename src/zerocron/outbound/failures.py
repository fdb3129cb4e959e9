"""Which kind a fault is, and its sentence. Holds no address, no port, and no text of a library."""

from __future__ import annotations

import errno
import re
import socket
import ssl
from collections.abc import Iterable
from typing import NamedTuple

import aiohttp
from aiohttp.http_exceptions import ContentLengthError, HttpProcessingError, TransferEncodingError

from zerocron.core.exchange import ERROR_KINDS, Failure
from zerocron.outbound.probe import Probe

# What targets, networks and resolvers cause. RuntimeError is what aiohttp and uvloop say of a connection that is gone.
TROUBLE = (TimeoutError, OSError, aiohttp.ClientError, HttpProcessingError, ValueError, RuntimeError)

SHORTAGE_ERRNOS = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN))
_UNREACHABLE_ERRNOS = frozenset((errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN))
_RESET_ERRNOS = frozenset((errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED))


class Scene(NamedTuple):
    """What is known of a request when its fault comes up."""

    probe: Probe
    timeout_seconds: float
    answering: bool  # the head of the answer is there
    looking_up: bool  # the resolver is at work on its name, and does not wait for a thread


class _Fault(NamedTuple):
    kind: str
    message: str | None = None  # None: the kind's own sentence


def failure_of(error: Exception, scene: Scene) -> Failure:
    return _failure(_fault(error, scene))


def lookup_failure(error: OSError) -> Failure:
    """Of a name that was looked up without aiohttp."""
    return _failure(_dns(error))


def connection_failure(error: OSError) -> Failure:
    """Of an address that was dialled without aiohttp."""
    return _failure(_connecting(error, Probe("", False)))


def no_time_to_follow(timeout_seconds: float) -> Failure:
    limit, how_far = f"{timeout_seconds:g} s", "the target redirected, and no time was left to follow"
    return Failure("timeout", f"The request did not finish within {limit}: {how_far}.")


def _failure(fault: _Fault) -> Failure:
    return Failure(fault.kind, fault.message or ERROR_KINDS[fault.kind])


def _fault(error: Exception, scene: Scene) -> _Fault:
    probe = scene.probe
    if isinstance(error, TimeoutError) and error.errno is None:  # with a number, it is the kernel that gave up
        return _time_is_up(scene)
    if probe.refusal is not None and probe.dialled_at is None:
        return _Fault("address_refused", probe.refusal.message)
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return _certificate(error.certificate_error)
        case aiohttp.ClientConnectorSSLError():
            return _handshake(error.os_error)
        case aiohttp.ClientConnectorDNSError():
            return _dns(error.os_error)
        case aiohttp.ClientConnectorError():
            return _connecting(error.os_error, probe)
    return _talking(error, answering=scene.answering)


def _talking(error: Exception, *, answering: bool) -> _Fault:
    """What went wrong on a connection that stood."""
    match error:
        case aiohttp.ServerDisconnectedError():
            return _Fault("no_response")
        case aiohttp.ClientPayloadError():
            cut = isinstance(error.__cause__, ContentLengthError | TransferEncodingError | OSError)
            return _Fault("incomplete_body" if cut else "protocol")
        case aiohttp.InvalidURL():
            return _Fault("invalid_url")
        case HttpProcessingError() if error.code == 101:
            return _Fault("protocol", error.message)
        case aiohttp.ClientResponseError() | HttpProcessingError():
            return _Fault(_head_kind(error.message))
        case OSError() | RuntimeError():
            return _Fault("incomplete_body" if answering else "connection_reset")
        case ValueError():
            return _Fault("protocol" if answering else "invalid_request")
    return _Fault("connection_failed")


def _time_is_up(scene: Scene) -> _Fault:
    probe, limit = scene.probe, f"{scene.timeout_seconds:g} s"
    if scene.answering:
        how_far = "the target had begun to answer, but the body did not end"
    elif probe.ready_at is not None:
        how_far = "the target was reached, but did not answer"
    else:
        how_far = "the TLS handshake did not end"
    if scene.answering or probe.ready_at is not None or probe.connected_at is not None:
        return _Fault("timeout", f"The request did not finish within {limit}: {how_far}.")
    if probe.dialled_at is not None:
        return _Fault("connect_timeout", f"The target did not accept the connection within {limit}.")
    if probe.placed_at is None:
        return _Fault("local_resources", f"No connection of this 0cron server was free within {limit}.")
    if not scene.looking_up:
        return _Fault("local_resources", f"This 0cron server had no thread to resolve the name within {limit}.")
    return _Fault("dns_timeout", f"The target's name was not resolved within {limit}.")


_ERRNO_IN_TEXT = re.compile(r"\[Errno (\d+)\]")


def _connecting(error: OSError, probe: Probe) -> _Fault:
    """The most telling of what the addresses of a name said: a machine that answers tells more than a missing route."""
    numbers = _numbers(error)
    if numbers & SHORTAGE_ERRNOS:
        return _Fault("local_resources")
    if errno.ECONNREFUSED in numbers:
        return _Fault("connection_refused")
    if probe.connected_at is not None:
        return _Fault("tls_handshake", "The target broke the connection during the TLS handshake.")
    if numbers & _RESET_ERRNOS:
        return _Fault("connection_reset")
    if errno.ETIMEDOUT in numbers:
        return _Fault("connect_timeout")
    if errno.EADDRNOTAVAIL in numbers and probe.dialled_ipv4:  # of IPv6 it says that this machine has none
        return _Fault("local_resources", "This 0cron server has no free port for another connection; nothing was sent.")
    if numbers & (_UNREACHABLE_ERRNOS | {errno.EADDRNOTAVAIL}):
        return _Fault("unreachable")
    return _Fault("connection_failed")


def _numbers(error: OSError) -> frozenset[int]:
    """Of several addresses that failed differently, aiohttp gives the numbers in the text only."""
    if error.errno is not None:
        return frozenset((error.errno,))
    return frozenset(int(number) for number in _ERRNO_IN_TEXT.findall(str(error)))


def _dns(error: OSError) -> _Fault:
    if not isinstance(error, socket.gaierror):
        return _Fault("local_resources" if error.errno in SHORTAGE_ERRNOS else "dns_failed")
    if error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)):
        return _Fault("dns_not_found")
    return _Fault("dns_failed")


# OpenSSL's X509_V_ERR numbers: kind, and what is wrong with the certificate.
_CERTIFICATE_FAULTS = {
    9: ("tls_certificate", "it is not valid yet"),
    10: ("tls_expired", "it has expired"),
    18: ("tls_self_signed", "it is self-signed"),
    19: ("tls_untrusted", "its chain ends in a self-signed certificate that this server does not trust"),
    20: ("tls_untrusted", "it was issued by an authority that this server does not know, or its chain is incomplete"),
    21: ("tls_untrusted", "its chain is incomplete"),
    23: ("tls_certificate", "it has been revoked"),
    62: ("tls_wrong_host", "it is for another host name"),
    64: ("tls_wrong_host", "it is for another address"),
}


def _certificate(error: Exception) -> _Fault:
    code = error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else 0
    kind, words = _CERTIFICATE_FAULTS.get(code, ("tls_certificate", "it cannot be verified"))
    return _Fault(kind, f"The target's certificate is not acceptable: {words}.")


# OpenSSL's reasons.
_NOT_TLS = frozenset(("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG"))
_NOTHING_IN_COMMON = ("UNSUPPORTED_PROTOCOL", "PROTOCOL_VERSION", "NO_PROTOCOLS_AVAILABLE", "VERSION_TOO_LOW")


def _handshake(error: OSError) -> _Fault:
    reason = getattr(error, "reason", None) or ""
    if reason in _NOT_TLS:
        return _Fault(
            "tls_protocol", "The target does not speak TLS on this port; perhaps the URL should start with http://."
        )
    if _any_in(_NOTHING_IN_COMMON, reason):
        return _Fault("tls_protocol", "The target speaks only versions of TLS that 0cron does not accept.")
    words = reason.replace("_", " ").lower() or "no reason given"
    return _Fault("tls_handshake", f"The TLS handshake with the target failed ({words}).")


def _any_in(words: Iterable[str], text: str) -> bool:
    return any(word in text for word in words)


def _head_kind(message: str) -> str:
    if "Too many headers" in message:
        return "too_many_headers"
    return "headers_too_large" if "Got more than" in message else "protocol"
