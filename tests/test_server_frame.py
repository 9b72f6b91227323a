"""The server's frame over real stdio: both protocol eras, broken lines, errors, exits."""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import JSONRPCResponse

from cortex.server.results import json_safe, line_of, tool_answer
from cortex.tools.registry import Answer, Written

SERVER = Path(__file__).with_name("frame_server.py")
ENV = {**os.environ, "PYTHONPATH": str(SERVER.parents[1])}
MODERN = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Raw:
    """A client that speaks in lines, and keeps every line it hears."""

    def __init__(self, *args: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(SERVER), *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENV,
        )
        self.heard: list[bytes] = []
        self.errors: list[bytes] = []
        self._replies: queue.Queue[Any] = queue.Queue()
        self._threads = [threading.Thread(target=self._listen), threading.Thread(target=self._log)]
        for thread in self._threads:
            thread.start()

    def _listen(self) -> None:
        for line in self.process.stdout or ():
            self.heard.append(line)
            self._replies.put(json.loads(line))

    def _log(self) -> None:
        self.errors.extend(self.process.stderr or ())

    def write(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def send(self, method: str, params: Any = None, request_id: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if request_id is not None:
            message["id"] = request_id
        self.write(json.dumps(message).encode() + b"\n")

    def reply(self, within: float = 10.0) -> Any:
        return self._replies.get(timeout=within)

    def ask(self, method: str, params: Any = None, request_id: Any = 1) -> Any:
        self.send(method, params, request_id)
        return self.reply()

    def call(self, tool: str, arguments: Any = None, request_id: Any = 1) -> Any:
        return self.ask("tools/call", {"name": tool, "arguments": arguments or {}}, request_id)

    def greet(self, version: str = "2025-11-25") -> Any:
        params = {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        answer = self.ask("initialize", params, 0)
        self.send("notifications/initialized")
        return answer

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()

    def code(self, within: float = 5.0) -> int:
        return self.process.wait(within)

    def stderr(self) -> str:
        self._threads[1].join(5)
        return b"".join(self.errors).decode()


@contextmanager
def raw(*args: str, greet: bool = True) -> Iterator[Raw]:
    client = Raw(*args)
    try:
        if greet:
            client.greet()
        yield client
    finally:
        client.process.kill()
        client.process.wait()
        for thread in client._threads:
            thread.join(5)
        for pipe in (client.process.stdin, client.process.stdout, client.process.stderr):
            with suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]


def parameters(*args: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=[str(SERVER), *args], env={"PYTHONPATH": ENV["PYTHONPATH"]}
    )


def text_of(reply: Any) -> str:
    return str(reply["result"]["content"][0]["text"])


# What is sent


@pytest.mark.parametrize("value", ["plain", "größer 🙂", "a\x00b", "a\ud800b", math.nan])
def test_the_line_of_an_answer_is_the_json_of_its_values(value: Any) -> None:
    listed = Written([{"at": 1}], b'[{"at":1}]')
    answer = tool_answer(Answer("said", {"value": value, "listed": listed, "none": None}))
    response = JSONRPCResponse(jsonrpc="2.0", id="x", result={**answer, "isError": False})
    sent = json.loads(line_of(response))
    assert sent == response.model_dump(mode="json")
    assert sent["result"]["structuredContent"] == {
        "value": json_safe(value),
        "listed": [{"at": 1}],
        "none": None,
    }


def test_what_is_no_value_fails_in_the_tool_and_not_in_the_transport() -> None:
    with pytest.raises(TypeError, match="object is no JSON value"):
        tool_answer(Answer("said", {"value": object()}))


# Eras


@pytest.mark.anyio
@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_both_eras_serve_the_same_tools_and_resources(mode: Any, version: str) -> None:
    async with Client(parameters(), mode=mode) as client:
        assert client.protocol_version == version
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["echo", "slow", "fail", "noise"]
        assert all(tool.output_schema is None for tool in tools.values())
        hints = tools["fail"].annotations
        assert hints is not None
        assert (hints.read_only_hint, hints.destructive_hint) == (False, True)
        assert (hints.idempotent_hint, hints.open_world_hint) == (False, False)
        result = await client.call_tool("echo", {"node_id": "a", "limit": "1000"})
        assert result.structured_content["limit"] == 200
        assert result.structured_content["notes"] == ["limit 1000 was clamped to 200"]
        assert result.structured_content["client"] == "mcp"
        assert len(result.content) == 1
        assert "note: limit 1000 was clamped to 200" in result.content[0].text
        resource = await client.read_resource("cortex://search/a/../b?c%20d#e")
        assert resource.contents[0].text == "a/../b?c d#e"
        assert [r.uri for r in (await client.list_resources()).resources] == ["cortex://status"]
        templates = (await client.list_resource_templates()).resource_templates
        assert [t.name for t in templates] == ["node", "search"]
        for uri, said in (("cortex://node/none", "No node none"), ("cortex://x", "{node_id}")):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            assert caught.value.code == -32602
            assert caught.value.message.startswith("not_found: ")
            assert said in caught.value.message
            assert caught.value.data["uri"] == uri


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_each_older_protocol_is_spoken_as_asked(version: str) -> None:
    with raw(greet=False) as client:
        answer = client.greet(version)["result"]
        assert answer["protocolVersion"] == version
        assert answer["serverInfo"]["version"] == "1.2.3"
        assert answer["instructions"] == "Search before you write."
        assert text_of(client.call("echo", {"node_id": "a"})) == "a "


def test_an_unknown_protocol_is_answered_with_the_newest_handshake() -> None:
    with raw(greet=False) as client:
        assert client.greet("2099-01-01")["result"]["protocolVersion"] == "2025-11-25"


def test_discover_opens_the_modern_era_without_a_handshake() -> None:
    with raw(greet=False) as client:
        found = client.ask("server/discover", MODERN)["result"]
        assert found["supportedVersions"] == ["2026-07-28"]
        params = {**MODERN, "name": "echo", "arguments": {"node_id": "a"}}
        result = client.ask("tools/call", params)["result"]
        assert result["structuredContent"]["client"] == "raw"


# Start


@pytest.mark.skipif(sys.platform != "linux", reason="reads the CPU time of another process")
def test_the_handshake_and_the_list_cost_less_than_a_second_of_cpu() -> None:
    spent = []
    for _ in range(3):  # the least of three: on a busy machine the same work costs more
        with raw("--open", "3") as client:
            client.ask("tools/list")
            times = psutil.Process(client.process.pid).cpu_times()
        spent.append(times.user + times.system)
    assert min(spent) < 1.0


def test_the_frame_imports_nothing_of_the_engine() -> None:
    heavy = "{'numpy', 'rustworkx', 'duckdb', 'fastembed', 'onnxruntime', 'qdrant_client'}"
    code = f"import sys, cortex.server.stdio; print({heavy} & {{*sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENV, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_the_list_does_not_wait_for_the_memory_but_an_early_call_does() -> None:
    with raw("--open", "1.5") as client:
        start = time.monotonic()
        assert client.ask("tools/list")["result"]["tools"]
        assert time.monotonic() - start < 1.0
        assert text_of(client.call("echo", {"node_id": "a"})) == "a "
        assert time.monotonic() - start > 1.4


@pytest.mark.parametrize(
    ("option", "said"), [("--fail", "the file is damaged"), ("--crash", "internal error")]
)
def test_a_memory_that_does_not_open_makes_every_call_unavailable(option: str, said: str) -> None:
    with raw(option) as client:
        for request_id in (1, 2):
            reply = client.call("echo", {"node_id": "a"}, request_id)
            assert reply["result"]["isError"]
            assert text_of(reply).startswith("unavailable: The memory is not open: ")
            assert said in text_of(reply)
            assert "secret" not in text_of(reply)
        error = client.ask("resources/read", {"uri": "cortex://status"})["error"]
        assert error["message"].startswith("unavailable: ")
        client.end()
        assert client.code() == 0


def test_read_only_leaves_out_every_tool_that_writes() -> None:
    with raw("--read-only") as client:
        tools = client.ask("tools/list")["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["echo", "noise"]
        assert text_of(client.call("slow")).startswith("not_found: ")


# Errors


def test_a_known_error_is_one_line_and_a_structured_code() -> None:
    with raw() as client:
        result = client.call("fail", {"how": "known"})["result"]
        line = "not_found: No node 12. Valid: 1 to 3. Search for it."
        assert result["isError"]
        assert [block["text"] for block in result["content"]] == [line]
        assert result["structuredContent"]["error"]["code"] == "not_found"


@pytest.mark.parametrize("how", ["bug", "exit", "value"])
def test_a_bug_is_told_by_an_id_and_explained_on_stderr_alone(how: str) -> None:
    with raw() as client:
        reply = client.call("fail", {"how": how})
        assert reply["result"]["isError"]
        line = text_of(reply)
        assert line.startswith("unavailable: internal error ")
        assert "secret" not in line
        assert "\n" not in line
        assert text_of(client.call("echo", {"node_id": "a"}, 2)) == "a "
        client.end()
        client.code()
        assert f"internal error {line.split()[3]}" in client.stderr()
        assert "Traceback" in client.stderr()


def test_an_unknown_tool_is_an_error_that_names_the_nearest() -> None:
    with raw() as client:
        reply = client.call("ecko")
        assert reply["result"]["isError"]
        assert "Did you mean echo" in text_of(reply)


def test_arguments_that_cannot_be_read_are_one_line_without_a_traceback() -> None:
    with raw() as client:
        for arguments in ({}, {"nodeid": "a"}, {"node_id": 5}, {"node_id": "a", "limit": -1}):
            line = text_of(client.call("echo", arguments))
            assert line.startswith("invalid: ")
            assert "\n" not in line
        client.end()
        client.code()
        assert "Traceback" not in client.stderr()


# The wire


def test_no_print_of_any_kind_reaches_the_protocol() -> None:
    with raw() as client:
        result = client.call("noise")["result"]
        assert result["structuredContent"] == {
            "read": "",
            "nan": None,
            "broken": "\ufffd",
            "t": [1],
        }
        client.end()
        assert client.code() == 0
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in client.heard)
        for said in ("import time", "a stray print", "a stray write", "a child"):
            assert said in client.stderr()


def test_a_quiet_conversation_leaves_stderr_empty_but_for_the_server_s_own_print() -> None:
    with raw() as client:
        client.ask("tools/list")
        client.call("echo", {"node_id": "a"})
        client.end()
        assert client.code() == 0
        assert client.stderr() == "a stray print at import time\n"


@pytest.mark.parametrize(
    ("text", "served"),
    [
        (rb"a\ud800b", "a\ufffdb"),
        (rb"a\udc00\ud800b", "a\ufffd\ufffdb"),
        (rb"\ud83d\ude00 \ud83d", "\U0001f600 \ufffd"),
        (b"a\xffb", "a\ufffdb"),
        (rb"a\u0000b", "a\ufffdb"),
        (rb"a\\ud800b", r"a\ud800b"),
    ],
)
def test_broken_unicode_is_replaced_and_served(text: bytes, served: str) -> None:
    with raw() as client:
        client.write(
            b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"echo",'
            b'"arguments":{"node_id":"a","text":"' + text + b'"}}}\n'
        )
        reply = client.reply()
        assert reply["id"] == "x"
        assert reply["result"]["structuredContent"]["text"] == served


@pytest.mark.parametrize(
    ("line", "request_id", "code"),
    [
        (b"hello", None, -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{', 7, -32700),
        (b'{"jsonrpc":"2.0","id":"a\\"b","method":"x",}', 'a"b', -32700),
        (b'{"method":"x","params":{"id":5},"id":8 "jsonrpc":"2.0"}', 8, -32700),
        (b'{"params":{"id":5},', None, -32700),
        (b"[" * 5000, None, -32600),
        (b'{"jsonrpc":"2.0","id":9,"method":"ping","params":' + b'{"a":' * 300, 9, -32700),
        (
            b'{"jsonrpc":"2.0","id":9,"method":"ping","params":'
            + b'{"a":' * 300
            + b"1"
            + b"}" * 301,
            9,
            -32600,
        ),
        (b"[]", None, -32600),
        (b"5", None, -32600),
        (b'{"id":3,"method":"ping"}', 3, -32600),
        (b'{"jsonrpc":"2.0","id":4}', 4, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, -32600),
    ],
)
def test_a_line_that_is_no_request_gets_an_error_under_its_id(
    line: bytes, request_id: Any, code: int
) -> None:
    with raw() as client:
        client.write(line + b"\n")
        reply = client.reply()
        assert (reply["id"], reply["error"]["code"]) == (request_id, code)
        assert client.ask("ping", None, 99)["id"] == 99


def test_blank_lines_and_broken_answers_are_not_answered() -> None:
    with raw() as client:
        client.write(b'\n  \r\n{"jsonrpc":"2.0","id":1,"result":5}\n{"id":2,"error":{}}\n')
        assert client.ask("ping", None, 99)["id"] == 99


def test_a_line_over_the_limit_is_refused_under_its_id_in_bounded_memory() -> None:
    with raw() as client:
        before = psutil.Process(client.process.pid).memory_info().rss
        client.write(b'{"method":"tools/call","params":{"name":"echo","arguments":{"text":"')
        for _ in range(64):
            client.write(b"a" * (1 << 20))
        client.write(b'"}},"jsonrpc":"2.0","id":5}\n')
        reply = client.reply(30)
        after = psutil.Process(client.process.pid).memory_info().rss
        assert reply["id"] == 5
        assert "too_large" in reply["error"]["message"]
        assert after - before < 40 << 20
        assert client.ask("ping", None, 99)["id"] == 99


def test_a_line_of_megabytes_below_the_limit_is_served() -> None:
    with raw() as client:
        reply = client.call("echo", {"node_id": "a", "text": "é" * (1 << 20)})
        assert len(reply["result"]["structuredContent"]["text"]) == 1 << 20


# Threads


def test_a_ping_is_answered_while_a_tool_holds_its_thread() -> None:
    with raw() as client:
        client.call("echo", {"node_id": "a"})
        client.send("tools/call", {"name": "slow", "arguments": {"seconds": 2}}, 1)
        start = time.monotonic()
        assert client.ask("ping", None, 2)["id"] == 2
        assert time.monotonic() - start < 0.5
        assert client.reply()["id"] == 1


def test_a_withdrawn_call_is_not_answered_and_the_server_goes_on() -> None:
    with raw() as client:
        client.call("echo", {"node_id": "a"})
        client.send("tools/call", {"name": "slow", "arguments": {"seconds": 0.5}}, 1)
        client.send("notifications/cancelled", {"requestId": 1})
        assert client.ask("ping", None, 2)["id"] == 2
        with pytest.raises(queue.Empty):
            client.reply(1.0)
        client.end()
        assert client.code(2) == 0


def test_hundreds_of_calls_at_once_are_each_answered_once() -> None:
    with raw() as client:
        for number in range(500):
            client.send(
                "tools/call", {"name": "echo", "arguments": {"node_id": str(number)}}, number
            )
        answers = {reply["id"]: text_of(reply) for reply in (client.reply() for _ in range(500))}
        assert answers == {number: f"{number} " for number in range(500)}


# Exits


def test_a_whole_conversation_in_one_pipe_is_answered_whole() -> None:
    lines = [request("tools/call", 1, name="echo", arguments={"node_id": "a"})]
    lines += [request("tools/list", 2), request("resources/read", 3, uri="cortex://status")]
    done = subprocess.run(
        [sys.executable, str(SERVER), "--open", "0.5"],
        input=b"".join(lines).rstrip(b"\n"),
        capture_output=True,
        env=ENV,
        timeout=10,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(answer["id"] for answer in answers if "result" in answer) == [1, 2, 3]


def test_no_input_at_all_is_an_orderly_end() -> None:
    command = [sys.executable, str(SERVER)]
    done = subprocess.run(command, input=b"", capture_output=True, env=ENV, timeout=5, check=True)
    assert done.stdout == b""


def test_the_end_of_stdin_closes_the_memory_and_exits_with_zero(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with raw("--log", str(log)) as client:
        client.call("echo", {"node_id": "a"})
        client.end()
        assert client.code(2) == 0
    assert log.read_text().split() == ["open", "close"]


def test_requests_under_way_when_stdin_ends_are_still_answered(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with raw("--log", str(log)) as client:
        client.send("tools/call", {"name": "slow", "arguments": {"seconds": 0.5}}, 1)
        client.end()
        assert text_of(client.reply()) == "slept"
        assert client.code() == 0
    assert log.read_text().split() == ["open", "slow", "slept", "close"]


@pytest.mark.parametrize("way", ["end", "SIGTERM", "SIGINT"])
def test_a_tool_that_runs_on_does_not_hold_the_process(way: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with raw("--log", str(log)) as client:
        client.send("tools/call", {"name": "slow", "arguments": {"seconds": 60}}, 1)
        while not log.exists() or "slow" not in log.read_text():
            time.sleep(0.01)
        start = time.monotonic()
        if way == "end":
            client.end()
        else:
            client.process.send_signal(getattr(signal, way))
        assert client.code() == 0
        assert time.monotonic() - start < 5
    assert log.read_text().split() == ["open", "slow", "close"]


@pytest.mark.parametrize("way", ["end", "SIGTERM"])
def test_a_memory_that_opens_for_ever_does_not_hold_the_process(way: str) -> None:
    with raw("--open", "60") as client:
        client.send("tools/call", {"name": "echo", "arguments": {"node_id": "a"}}, 1)
        client.ask("ping", None, 2)
        if way == "end":
            client.end()
        else:
            client.process.send_signal(signal.SIGTERM)
        assert client.code() == 0


@contextmanager
def deaf(*args: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server whose client does not read what it says."""
    process = subprocess.Popen(
        [sys.executable, str(SERVER), *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENV,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]


def request(method: str, request_id: int, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**MODERN, **params}}
    return json.dumps(message).encode() + b"\n"


def test_a_client_that_closes_its_end_is_left_quietly(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with deaf("--log", str(log)) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(request("tools/call", 1, name="echo", arguments={"node_id": "a"}))
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        process.stdin.write(request("tools/list", 2))
        process.stdin.flush()
        assert process.wait(5) == 0
        assert process.stderr.read() == b"a stray print at import time\n"
    assert log.read_text().split() == ["open", "close"]


@pytest.mark.parametrize("way", ["end", "SIGTERM"])
def test_a_client_that_does_not_read_does_not_hold_the_process(way: str) -> None:
    with deaf() as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(request("tools/list", 0))
        process.stdin.flush()
        assert process.stdout.readline()
        for number in range(1, 200):  # answers far beyond what a pipe holds
            process.stdin.write(request("tools/list", number))
        process.stdin.flush()
        time.sleep(0.5)
        if way == "end":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
