"""`zetta doctor policy` names the convention that does not fit, and why nobody answers."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from websockets.sync.server import ServerConnection

from tests.runtime.foreign.foreign_servers import gr00t_server, openpi_server
from zetta.runtime.cli import main as cli
from zetta.runtime.foreign import gr00t_codec, openpi_codec
from zetta.runtime.foreign.gr00t_codec import Modality
from zetta.runtime.foreign.robots import OPENPI_LIBERO

Request = dict[str, Any]
MEASURED = "observation/state"


def doctor(url: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    with pytest.raises(SystemExit) as left:
        cli.main(["doctor", "policy", f"{url},connect_s=0.5,deadline_s=2", "--json"])
    assert isinstance(left.value.code, int)
    return left.value.code, json.loads(capsys.readouterr().out)


def good(asked: Request) -> Any:
    """Answer as a policy that looks at everything and keeps an empty hand open."""
    rows = np.zeros((10, 7), np.float32)
    rows[:, :3] = np.asarray(asked[MEASURED])[:3] / 2
    rows[:, 3] = asked["observation/image"][:, :50].mean() / 255
    rows[:, 6] = -1.0
    return {"actions": rows}


def served(
    answer: Callable[[Request], Any], metadata: object
) -> Callable[[ServerConnection], None]:
    def visit(line: ServerConnection) -> None:
        line.send(openpi_codec.encode(metadata))
        for message in line:
            assert isinstance(message, bytes)
            said = answer(openpi_codec.decode(message))
            line.send(said if isinstance(said, str) else openpi_codec.encode(said))

    return visit


def examine(
    capsys: pytest.CaptureFixture[str],
    answer: Callable[[Request], Any],
    metadata: object = None,
    options: str = "",
) -> tuple[int, dict[str, Any]]:
    with openpi_server(served(answer, metadata or {})) as port:
        return doctor(f"openpi://127.0.0.1:{port}@libero{options}", capsys)


def finding(told: dict[str, Any], name: str) -> tuple[str, str]:
    ((state, sentence),) = [
        (f["state"], f["sentence"]) for f in told["findings"] if f["name"] == name
    ]
    return state, sentence


def test_a_server_that_fits_exits_zero_and_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    code, told = examine(capsys, good)
    assert code == 0
    assert told["fits"] is True
    assert {f["state"] for f in told["findings"]} == {"ok", "unknown"}
    state, sentence = finding(told, "image orientation")
    assert state == "unknown"
    assert "mirror" in sentence
    assert {a["key"]: a["shape"] for a in told["asked"]}[MEASURED] == [8]
    assert told["answered"] == [{"key": "actions", "shape": [10, 7], "dtype": "float32"}]
    assert told["median_ms"] > 0
    assert told["first_ms"] > 0


def test_people_get_lines(capsys: pytest.CaptureFixture[str]) -> None:
    visit = served(good, {"checkpoint": "pi05_libero"})
    with openpi_server(visit) as port, pytest.raises(SystemExit) as left:
        cli.main(["doctor", "policy", f"openpi://127.0.0.1:{port}@libero"])
    told = capsys.readouterr().out
    assert left.value.code == 0
    assert "pi05_libero" in told
    assert "224x224x3" in told
    assert "gripper sign" in told


def rows(change: Callable[[Any], Any]) -> Callable[[Request], Any]:
    return lambda asked: {"actions": change(good(asked)["actions"])}


def column(index: int, value: float) -> Callable[[Any], Any]:
    def change(actions: Any) -> Any:
        actions[:, index] = value
        return actions

    return change


@pytest.mark.parametrize(
    ("answer", "name", "state", "said"),
    [
        (rows(lambda a: np.zeros((10, 8))), "action dims", "wrong", "rows of 7"),
        (rows(lambda a: a[:3]), "horizon", "wrong", "replan_steps=3,horizon=3"),
        (rows(lambda a: a[:6]), "horizon", "wrong", "horizon=6"),
        (rows(column(0, 40.0)), "action scale", "wrong", "statistics"),
        (rows(column(6, 0.0)), "gripper sign", "suspect", "does not use -1"),
        (rows(column(6, 1.0)), "gripper sign", "suspect", "reversed"),
        (rows(column(6, 80.0)), "gripper sign", "wrong", "80"),
        (rows(column(3, 0.5)), "image orientation", "suspect", "may not look"),
        (
            rows(lambda a: np.tile(a[0] * [0, 0, 0, 1, 1, 1, 1], (10, 1))),
            "state",
            "suspect",
            "0.1 m",
        ),
        (lambda asked: {"action": 1}, "action dims", "wrong", "actions"),
        (
            lambda asked: "Traceback\nValueError: expected state of shape (7,), got (8,)",
            "state",
            "wrong",
            "length or order",
        ),
        (lambda asked: "KeyError: 'observation/image_left'", "pictures", "wrong", "other keys"),
        (lambda asked: "RuntimeError: out of memory", "request", "wrong", "log"),
    ],
)
def test_what_does_not_fit_is_named_in_one_sentence(
    capsys: pytest.CaptureFixture[str],
    answer: Callable[[Request], Any],
    name: str,
    state: str,
    said: str,
) -> None:
    code, told = examine(capsys, answer)
    found, sentence = finding(told, name)
    assert found == state, sentence
    assert said in sentence
    assert "\n" not in sentence
    assert code == (1 if state == "wrong" else 0)


def test_a_server_that_describes_itself_otherwise_is_believed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fits = {
        "pictures": {"/".join(p.path): "mirror" for p in OPENPI_LIBERO.pictures},
        "state": {MEASURED: 8},
        "gripper": [-1.0, 1.0],
    }
    code, told = examine(capsys, good, {"zetta": fits})
    assert (code, finding(told, "image orientation")[0]) == (0, "ok")
    other = fits | {"pictures": {"observation/image": "none"}, "state": {MEASURED: 7}}
    with openpi_server(served(good, {"zetta": other | {"gripper": [1.0, 0.0]}})) as port:
        code, told = doctor(f"openpi://127.0.0.1:{port}@libero", capsys)
    wrong = {f["name"] for f in told["findings"] if f["state"] == "wrong"}
    assert wrong == {"image orientation", "state", "gripper sign"}
    assert code == 1


def test_a_gr00t_server_is_examined_too(capsys: pytest.CaptureFixture[str]) -> None:
    keys = ("x", "y", "z", "roll", "pitch", "yaw", "gripper")

    def answer(request: Request) -> bytes:
        match request["endpoint"]:
            case "get_modality_config":
                said: Any = {"action": Modality(keys, tuple(range(16))), "state": Modality(keys)}
            case "get_action":
                seen = request["data"]["observation"]
                value = (
                    float(seen["state"]["x"][0, 0, 0]) + seen["video"]["image"][..., :9, 0].mean()
                )
                said = [{k: np.full((1, 16, 1), value / 300, np.float32) for k in keys}, {}]
                said[0]["gripper"][:] = 1.0  # theirs opens
            case _:
                said = {"status": "ok"}
        return gr00t_codec.encode(said)

    with gr00t_server(answer) as port:
        code, told = doctor(f"gr00t://127.0.0.1:{port}@libero", capsys)
    assert code == 0, told
    assert told["form"] == "n1.6"
    assert told["horizon"] == 16
    assert told["described"]["generation"] == "n1.6"
    assert finding(told, "gripper sign")[0] == "ok"


# --------------------------------------------------------------------------- nobody to examine


@pytest.mark.parametrize("scheme", ["openpi", "gr00t"])
def test_nobody_and_somebody_silent_are_told_apart(
    scheme: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        code, told = doctor(f"{scheme}://127.0.0.1:{port}@libero", capsys)
        assert (code, told["reachable"], told["reason"]) == (1, False, "no answer")
    code, told = doctor(f"{scheme}://127.0.0.1:{port}@libero", capsys)
    assert (code, told["reachable"], told["reason"]) == (1, False, "refused")
    assert "nothing listens" in told["detail"]


def test_somebody_else_is_a_bad_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with gr00t_server(lambda request: b"hello") as port:
        code, told = doctor(f"gr00t://127.0.0.1:{port}@libero", capsys)
    assert (code, told["reason"]) == (1, "bad answer")
    with gr00t_server(lambda request: gr00t_codec.encode({"error": "Unauthorized"})) as port:
        code, told = doctor(f"gr00t://127.0.0.1:{port}@libero", capsys)
    assert (code, told["reason"]) == (1, "key refused")


@pytest.mark.parametrize(
    ("url", "said"),
    [("http://h:1@x", "no address"), ("openpi://h:1@liberro", "libero")],
)
def test_what_is_no_address_is_an_error(
    url: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["doctor", "policy", url])
    assert left.value.code == 1
    assert said in capsys.readouterr().err
