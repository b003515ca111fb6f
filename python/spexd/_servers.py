"""Servers as a user names them, and the credentials for them."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import re
import socket
from collections.abc import Callable
from typing import Any

import grpc

from spexd.errors import InvalidArgumentError, UnavailableError

_MAX_FILE_BYTES = 1 << 20
_MAX_TOKEN_BYTES = 4096
_DNS = "dns:///"
# W3C "Trace Context": version, ids and flags, and the additions of later versions.
_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})(-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2})(-.*)?", re.DOTALL
)

# Equal to the C++ client's (client/connection/grpc_connection.cc): this package does its own retries, each channel has
# its own connection, and a broken network is noticed within 30 s. Old grpcio looks an address up again before it
# reconnects, by default not within 30 s.
CHANNEL_OPTIONS = (
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.dns_min_time_between_resolutions_ms", 100),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.keepalive_time_ms", 20000),
    ("grpc.keepalive_timeout_ms", 10000),
    ("grpc.http2.max_pings_without_data", 0),
)


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """One server."""

    target: str
    tls_name: str = ""  # name that its certificate must have; "": the target's own

    def options(self) -> list[tuple[str, object]]:
        """Returns the options of the channel."""
        name = [("grpc.ssl_target_name_override", self.tls_name)] if self.tls_name else []
        return [*CHANNEL_OPTIONS, *name]


@dataclasses.dataclass(frozen=True)
class Servers:
    """The servers of one address, and the credentials for them."""

    address: str
    credentials: grpc.ChannelCredentials | None  # None: plain text
    token: str  # "": none
    trace: tuple[tuple[str, str], ...]

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of every call."""
        return (("authorization", "Bearer " + self.token), *self.trace) if self.token else self.trace

    @property
    def names(self) -> bool:
        """Whether the servers of the address may change."""
        return _DNS in self.address

    def find(self) -> tuple[Endpoint, ...]:
        """Looks up the current servers of the address."""
        endpoints = find_servers(self.address)
        if not self.token or self.credentials is not None:
            return endpoints
        allowed = tuple(endpoint for endpoint in endpoints if _stays_here(endpoint.target))
        for endpoint in endpoints:
            # Addresses of a name are left out if there are other servers; a literal address was given by the user and
            # is an error.
            if endpoint not in allowed and not (allowed and endpoint.tls_name):
                raise InvalidArgumentError(
                    f"the token would go to {endpoint.target} in plain text; give the server's TLS authorities"
                )
        return allowed

    def channel_maker(self, kind: Any, server: Endpoint) -> Callable[[], Any]:
        """Returns a function that makes channels to ``server``. ``kind``: the module ``grpc`` or ``grpc.aio``."""
        if self.credentials is None:
            return lambda: kind.insecure_channel(server.target, server.options())
        return lambda: kind.secure_channel(server.target, self.credentials, server.options())


def find_servers(address: str) -> tuple[Endpoint, ...]:
    """Returns the servers of "a:1,b:2" or "dns:///name:port", each once, in that order.

    >>> [server.target for server in find_servers("a:1, b:2,a:1")]
    ['a:1', 'b:2']
    >>> find_servers("dns:///127.0.0.1:50051")
    (Endpoint(target='127.0.0.1:50051', tls_name='127.0.0.1'),)
    """
    servers: dict[str, Endpoint] = {}
    for part in address.split(","):
        name = part.strip()
        if not name:
            raise InvalidArgumentError(f"server address {address!r} has an empty part")
        for server in _look_up(name[len(_DNS) :]) if name.startswith(_DNS) else [Endpoint(name)]:
            servers.setdefault(server.target, server)
    if not servers:
        raise UnavailableError(f"server address {address} names no server")
    return tuple(servers.values())


def _look_up(name: str) -> list[Endpoint]:
    host, _, port = name.rpartition(":")
    if not host or not port:
        raise InvalidArgumentError(f"server address {_DNS}{name} must be {_DNS}name:port")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise UnavailableError(f"server address {name}: {error}") from error
    addresses = set()
    for family, _, _, _, where in found:
        ip, number = socket.getnameinfo(where, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)
        addresses.add(f"[{ip}]:{number}" if family == socket.AF_INET6 else f"{ip}:{number}")
    return [Endpoint(address, host) for address in sorted(addresses)]


def make_servers(address: str, tls_ca: str, tls_cert: str, tls_key: str, token_file: str) -> Servers:
    """Reads the files of TLS and token ("": none)."""
    if bool(tls_cert) != bool(tls_key):
        raise InvalidArgumentError("a TLS certificate and its key must be given together")
    if tls_cert and not tls_ca:
        raise InvalidArgumentError("a TLS certificate needs the authorities that signed the server's")
    credentials = None
    if tls_ca:
        credentials = grpc.ssl_channel_credentials(
            _read("TLS authorities", tls_ca),
            _read("TLS key", tls_key) if tls_key else None,
            _read("TLS certificate", tls_cert) if tls_cert else None,
        )
    token = _token(token_file) if token_file else ""
    return Servers(address, credentials, token, trace_metadata(os.environ.get("TRACEPARENT", "")))


def trace_metadata(traceparent: str) -> tuple[tuple[str, str], ...]:
    """Returns the metadata of calls for a W3C traceparent: version 00, or nothing if it is not valid.

    >>> trace_metadata("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    (('traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'),)
    >>> trace_metadata("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more")
    (('traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'),)
    >>> trace_metadata("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more")
    ()
    >>> trace_metadata("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01")
    ()
    """
    match = _TRACEPARENT.fullmatch(traceparent)
    if match is None or (match[1] == "00" and match[3] is not None):
        return ()
    return (("traceparent", "00" + match[2]),)


def _read(field: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidArgumentError(f'{field} "{path}" cannot be read: {error.strerror}') from error
    if not content or len(content) > _MAX_FILE_BYTES:
        raise InvalidArgumentError(f'{field} "{path}" has {len(content)} bytes, must be 1 to {_MAX_FILE_BYTES}')
    return content


def _token(path: str) -> str:
    token = _read("token file", path).strip().decode("latin-1")
    if 1 <= len(token) <= _MAX_TOKEN_BYTES and all("!" <= character <= "~" for character in token):
        return token
    raise InvalidArgumentError(
        f'token file "{path}" must have one token of 1 to {_MAX_TOKEN_BYTES} printable characters'
    )


def _stays_here(target: str) -> bool:
    if target.startswith(("unix:", "unix-abstract:", "localhost:", "[::1]:")):
        return True
    try:
        return ipaddress.IPv4Address(target.rpartition(":")[0]).is_loopback
    except ValueError:
        return False


def from_environment(value: str | None, variable: str) -> str:
    """Returns ``value``, or the environment variable's value if it is None, or ""."""
    return value if value is not None else os.environ.get(variable, "")
