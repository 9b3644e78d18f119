"""Sends malformed and oversized HTTP messages to a server, and compares the status lines with RFC 9112 and RFC 9110.

Usage: messages.py HOST:PORT KEY   one line for each difference; exit status 1: there are some
"""
import itertools
import random
import socket
import sys
import time

host, port = sys.argv[1].rsplit(":", 1)
KEY = f"Authorization: Bearer {sys.argv[2]}"
BODY = '{"model":"edge","prompt":"Once","max_tokens":1}'
JSON = "Content-Type: application/json"
wrong = 0


def status(data, more=b"", seconds=10.0):
    """The status of the first answer; 0: the connection ended without one."""
    with socket.create_connection((host, int(port)), seconds) as s:
        try:
            s.sendall(data)
            end = time.monotonic() + seconds
            while more and time.monotonic() < end:
                s.sendall(more)
        except OSError:
            pass
        answer = b""
        try:
            while b"\r\n" not in answer and (part := s.recv(4096)):
                answer += part
        except OSError:
            pass
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.") else 0


def check(what, found, *allowed):
    global wrong
    if found not in allowed:
        print(f"{what}: {found}, wanted {' or '.join(map(str, allowed))}")
        wrong += 1


def post(*headers, body=BODY, version="HTTP/1.1", path="/v1/completions"):
    lines = [f"POST {path} {version}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


HOST, LENGTH = "Host: localhost", f"Content-Length: {len(BODY)}"
check("right", status(post(HOST, KEY, JSON, LENGTH)), 200)
check("two equal lengths", status(post(HOST, KEY, JSON, LENGTH, LENGTH)), 200, 400)
check("two lengths", status(post(HOST, KEY, JSON, LENGTH, "Content-Length: 5")), 400)
check("two lengths, shorter first", status(post(HOST, KEY, JSON, "Content-Length: 5", LENGTH)), 400)
check("a space before the colon", status(post(HOST, KEY, JSON, f"Content-Length : {len(BODY)}")), 400)
check("length and chunks", status(post(HOST, KEY, JSON, LENGTH, "Transfer-Encoding: chunked", body="0\r\n\r\n")), 400)
check("another coding", status(post(HOST, KEY, JSON, "Transfer-Encoding: gzip")), 400, 501)
check("two hosts", status(post(HOST, HOST, KEY, JSON, LENGTH)), 400)
check("no host", status(post(KEY, JSON, LENGTH)), 400)
check("no key", status(post(HOST, JSON, LENGTH)), 401)
check("no JSON", status(post(HOST, KEY, LENGTH)), 415)
check("2 GB announced", status(post(HOST, KEY, JSON, "Content-Length: 2147483648", "Expect: 100-continue", body="")), 413)
check("2 GB announced, without a key", status(post(HOST, JSON, "Content-Length: 2147483648", "Expect: 100-continue", body="")), 401, 413)
check("another expectation", status(post(HOST, KEY, JSON, LENGTH, "Expect: tea")), 417)
check("no such path, with a long body", status(post(HOST, KEY, JSON, "Content-Length: 900000", body="", path="/v1/none")), 404)
chunk = b"10000\r\n" + bytes(65536) + b"\r\n"
begun = time.monotonic()
check("endless chunks, without a key", status(post(HOST, JSON, "Transfer-Encoding: chunked", body=""), chunk, 3), 401, 0)
check("endless chunks", status(post(HOST, KEY, JSON, "Transfer-Encoding: chunked", body=""), chunk, 3), 413, 0)
check("chunks end soon", int(time.monotonic() - begun), *range(8))

# Damaged heads: no answer but of 4xx or 5xx, or none, unless the message is still right.
random.seed(7)
right = post(HOST, KEY, JSON, LENGTH)
lengths = [b"-1", b"1e3", b"0x10", b"+5", b"5 5", b"5,5", b" ", b"99999999999999999999", b"5;", b"\x005", b"V"]
for text in lengths:
    check(f"Content-Length {text!r}", status(right.replace(b"Content-Length: %d" % len(BODY), b"Content-Length: " + text)), 400, 413, 0)
names = [b"Content Length", b"Content-Length\t", b"(Content-Length)", b"Content-Length\x7f", b"", b"Content-Length,", b"Content\x01Length"]
for name in names:
    check(f"header {name!r}", status(right.replace(b"Content-Length", name)), 400, 0)
count = int(sys.argv[3]) if len(sys.argv) > 3 else 100
for _ in range(count):
    at = random.randrange(right.index(b"\r\n\r\n"))
    found = status(right[:at] + bytes([random.choice(b"\x00\x01 \t:;,\r\n\x7f\xff")]) + right[at + 1:], seconds=0.3)
    check(f"byte {at} changed", found, 200, 400, 401, 403, 404, 405, 411, 413, 415, 417, 431, 501, 505, 0)
check("afterwards", status(right), 200)

# Beyond the limit of connections the server says so.
held = []
for i in range(300):
    s = socket.create_connection((host, int(port)), 10)
    s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
    held.append(s)
check("after 300 silent connections", status(right), 200, 503)
for s in held:
    s.close()
sys.exit(1 if wrong else 0)
