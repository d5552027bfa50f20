"""Sockets: every wait ends, late replies are dropped, strangers stay outside."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from zetta.runtime.curve_keys import (
    read_client_keys,
    read_server_keys,
    write_keys,
)
from zetta.runtime.errors import ConfigError, ConnectionLost, InfraError, Timeout
from zetta.runtime.transport import Dealer, Router, check_bind, check_destination
from zetta.runtime.wire import Reply, read_request, reply_frames

SHORT_S, LONG_S = 0.05, 10.0


@pytest.fixture
def router() -> Iterator[Router]:
    made = Router("tcp://127.0.0.1:*")
    yield made
    made.close(0)


@pytest.fixture
def dealer(router: Router) -> Iterator[Dealer]:
    made = Dealer(router.endpoint)
    yield made
    made.close()


def taken(router: Router) -> tuple[bytes, int]:
    """Wait for a request; return its sender and its id."""
    assert router.socket.poll(LONG_S * 1000)
    peer, *frames = router.receive() or []
    return bytes(peer), read_request(frames).id


def answering(router: Router, count: int) -> threading.Thread:
    """Answer `count` requests with their own id, in a thread."""

    def answer() -> None:
        for _ in range(count):
            peer, number = taken(router)
            router.send(peer, reply_frames(Reply(number, number)))

    thread = threading.Thread(target=answer)
    thread.start()
    return thread


def test_a_call_gets_its_own_reply(router: Router, dealer: Dealer) -> None:
    thread = answering(router, 3)

    assert [dealer.call("ask", {}, LONG_S) for _ in range(3)] == [1, 2, 3]
    thread.join()


def test_an_error_in_a_reply_is_raised(router: Router, dealer: Dealer) -> None:
    def refuse() -> None:
        peer, number = taken(router)
        router.send(peer, reply_frames(Reply(number, error=ConfigError("got a, expected b"))))

    thread = threading.Thread(target=refuse)
    thread.start()
    with pytest.raises(ConfigError, match="got a, expected b"):
        dealer.call("ask", {}, LONG_S)
    thread.join()


def test_no_answer_is_a_timeout_that_names_the_place_and_the_socket_is_made_anew(
    router: Router, dealer: Dealer
) -> None:
    with pytest.raises(Timeout, match=r"127\.0\.0\.1:\d+ did not answer ask within 0\.05 s"):
        dealer.call("ask", {}, SHORT_S)

    assert dealer.rebuilt == 1

    def answer_everything() -> None:
        number = 1
        while number < 2:  # the first one may never have left
            peer, number = taken(router)
            router.send(peer, reply_frames(Reply(number, number)))

    thread = threading.Thread(target=answer_everything)
    thread.start()
    assert dealer.call("ask", {}, LONG_S) == 2
    thread.join()


def test_replies_to_other_requests_are_dropped_and_counted(router: Router, dealer: Dealer) -> None:
    def answer() -> None:
        peer, number = taken(router)
        for wrong in (number - 1, number + 1, -1):
            router.send(peer, reply_frames(Reply(wrong, "stale")))
        router.send(peer, reply_frames(Reply(number, "mine")))

    thread = threading.Thread(target=answer)
    thread.start()

    assert dealer.call("ask", {}, LONG_S) == "mine"
    assert dealer.late == 3
    thread.join()


def test_a_server_that_goes_away_is_noticed_before_the_deadline() -> None:
    router = Router("tcp://127.0.0.1:*")
    dealer = Dealer(router.endpoint)

    def leave() -> None:
        taken(router)
        router.close(0)

    thread = threading.Thread(target=leave)
    thread.start()
    with pytest.raises(ConnectionLost, match="went away during ask"):
        dealer.call("ask", {}, 60.0)
    thread.join()
    dealer.close()


def test_where_nobody_listens_the_wait_is_bounded() -> None:
    dealer = Dealer("tcp://127.0.0.1:9")
    with pytest.raises(Timeout):
        dealer.call("ask", {}, SHORT_S)
    dealer.close()
    dealer.close()


# --------------------------------------------------------------------------- who may come in


@pytest.mark.parametrize(
    "place", ["tcp://127.0.0.1:5601", "tcp://localhost:1", "tcp://[::1]:7", "ipc:///tmp/a"]
)
def test_loopback_is_bound_without_keys(place: str) -> None:
    check_bind(place, keys=False)


@pytest.mark.parametrize("place", ["tcp://0.0.0.0:5601", "tcp://*:5601", "tcp://robot.lan:5601"])
def test_any_other_place_needs_keys(place: str) -> None:
    check_bind(place, keys=True)
    with pytest.raises(ConfigError, match="zetta serve keygen") as error:
        check_bind(place, keys=False)
    assert "\n" not in str(error.value)
    with pytest.raises(ConfigError, match="zetta serve keygen"):
        Router(place)


@pytest.mark.parametrize("place", ["5601", "tcp://host", "udp://a:1", "tcp://:5", "tcp://a:70000"])
def test_what_is_no_endpoint_is_refused(place: str) -> None:
    with pytest.raises(ConfigError, match="expected tcp://HOST:PORT"):
        check_bind(place, keys=True)
    with pytest.raises(ConfigError, match="expected tcp://HOST:PORT"):
        Dealer(place)


def test_a_bind_address_is_no_destination() -> None:
    with pytest.raises(ConfigError, match="address to bind, not one to connect to"):
        check_destination("tcp://0.0.0.0:5601")


def test_a_taken_port_is_explained(router: Router) -> None:
    with pytest.raises(InfraError, match=r"cannot listen at .* is another server there"):
        Router(router.endpoint)
    with pytest.raises(ConfigError, match="cannot listen"):  # no address of this machine
        Router("ipc:///no/such/folder/socket")


def test_known_keys_come_in_and_strangers_do_not(tmp_path: Path) -> None:
    server_file, client_file = write_keys(tmp_path / "ours")
    write_keys(tmp_path / "theirs")
    router = Router("tcp://127.0.0.1:*", read_server_keys(server_file))
    ours = Dealer(router.endpoint, read_client_keys(client_file))
    stranger = read_client_keys(tmp_path / "theirs")
    server = read_client_keys(client_file).server
    wrong_pair = Dealer(router.endpoint, type(stranger)(stranger.public, stranger.secret, server))
    without = Dealer(router.endpoint)
    thread = answering(router, 1)

    assert ours.call("ask", {}, LONG_S) == 1
    thread.join()
    for other in (wrong_pair, without):
        with pytest.raises(InfraError):
            other.call("ask", {}, 1.0)
    assert router.receive() is None
    for each in (ours, wrong_pair, without):
        each.close()
    router.close(0)
    router.close(0)


def test_key_files_are_for_their_owner_alone_and_never_overwritten(tmp_path: Path) -> None:
    files = write_keys(tmp_path / "keys")
    before = [file.read_bytes() for file in files]

    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    with pytest.raises(ConfigError, match="is there already"):
        write_keys(tmp_path / "keys")
    assert [file.read_bytes() for file in files] == before


def test_keys_that_others_can_read_or_that_are_none_are_refused(tmp_path: Path) -> None:
    server_file, client_file = write_keys(tmp_path)
    secret = read_server_keys(server_file).secret

    with pytest.raises(ConfigError, match="holds no keys of this kind") as error:
        read_client_keys(server_file)
    assert secret not in str(error.value)
    assert secret not in repr(read_server_keys(server_file))
    client_file.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_client_keys(client_file)
    with pytest.raises(ConfigError, match="zetta serve keygen"):
        read_server_keys(tmp_path / "none")
