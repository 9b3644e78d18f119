"""Sends malformed and oversized HTTP messages to a server, and compares the status lines with RFC 9112 and RFC 9110.

Usage: messages.py HOST:PORT KEY   one line for each difference; exit status 1: there are some
"""
import json
import random
import re
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

# Messages of which a few bytes are changed, against what RFC 9112 says of each.
TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
REFUSED = {0, 400, 401, 404, 405, 413, 415, 501, 505}  # a malformed message may be refused for whatever is seen first


def chunks(body):
    """The content of a chunked body and whether every line ends as RFC 9112, 7.1 says; None: it is malformed, or has no end."""
    content, strict = b"", True
    while match := re.match(rb"([0-9A-Fa-f]+)([ \t]*)(;[^\n]*?)?(\r?\n)", body):
        size, strict = int(match[1], 16), strict and match[4] == b"\r\n" and not match[2] and b"\r" not in (match[3] or b"")
        body = body[match.end():]
        if size == 0:
            end = re.match(rb"([^\r\n:]+:[^\r\n]*\r?\n)*\r?\n", body)
            return (content, strict and b"\n" not in body[:end.end()].replace(b"\r\n", b"")) if end else None
        end = re.match(rb"\r?\n", body[size:])
        if not end:
            return None
        content, strict, body = content + body[:size], strict and end[0] == b"\r\n", body[size + end.end():]
    return None


def content(body):
    """What a body may be answered with, beside 200."""
    try:
        found, right_one = json.loads(body), json.loads(BODY)
        named = not isinstance(found, dict) or found.get("model") == right_one["model"]
        return set() if found == right_one else {200, 400} if named else {200, 400, 404}
    except ValueError:
        return {400}


def judge(message):
    """The statuses that RFC 9112 and RFC 9110 allow; 0: the connection ends or waits for more. What a recipient MAY take, a
    line that ends with LF only (2.2), other white space in the first line (3) or a folded line (5.2), it may also refuse."""
    message = re.sub(rb"^(\r?\n)+", b"", message)
    end = re.search(rb"\r?\n\r?\n", message)
    if not end:
        return REFUSED
    lines, rest = re.split(rb"\r?\n", message[:end.start()]), message[end.end():]
    words, fields, allowed = lines[0].split(), [], set()
    if lines[0] != b" ".join(words) or b"\n" in message[:end.end()].replace(b"\r\n", b""):
        allowed |= REFUSED
    if len(words) != 3 or not re.fullmatch(rb"HTTP/1\.[0-9]", words[2]):
        return REFUSED
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if line[:1] in (b" ", b"\t"):
            allowed |= REFUSED
            if fields:
                fields[-1][1] = (fields[-1][1] + b" " + line.strip(b" \t")).strip(b" \t")
            continue
        if not colon or not TOKEN.fullmatch(name):
            return REFUSED
        if re.search(rb"[\x00-\x08\x0a-\x1f\x7f-\xff]|[ \t]\Z", value):  # libmicrohttpd leaves a blank at the end in the value
            allowed |= REFUSED
        fields.append([name.lower(), re.sub(rb"[\x00\r]", b" ", value).strip(b" \t")])
    of = {name: [v for n, v in fields if n == name] for name, _ in fields}
    lengths, codings = set(of.get(b"content-length", [])), of.get(b"transfer-encoding", [])
    if len(of.get(b"host", [])) > 1 or (not of.get(b"host") and words[2] != b"HTTP/1.0"):
        return REFUSED
    if len(lengths) > 1 or not all(re.fullmatch(rb"[0-9]+", n) for n in lengths) or len(codings) + len(lengths) > 1:
        return REFUSED
    faults = set()
    if not TOKEN.fullmatch(words[0]):
        faults |= {400, 405, 501}
    elif words[0] != b"POST":
        faults |= {405, 501}
    if words[1] != b"/v1/completions":
        faults |= {400, 404, 405}
    types = {v.split(b";")[0].strip(b" \t").lower() for v in of.get(b"content-type", [])}
    if b"application/json" not in types:
        faults |= {415}
    elif len(types) > 1:
        allowed |= {400, 415}
    if KEY.encode().partition(b": ")[2] not in of.get(b"authorization", [])[:1]:
        faults |= {401}
    if codings:
        found = chunks(rest) if codings[0].lower() == b"chunked" else None
        faults |= content(found[0]) if found else REFUSED
        allowed |= set() if found and found[1] else REFUSED
    else:
        length = int(next(iter(lengths), b"0"))
        faults |= content(rest[:length]) if len(rest) >= length else REFUSED
    return allowed | (faults or {200})


def damage(message):
    at, byte = random.randrange(len(message)), bytes([random.choice(b"\x00\x01 \t:;,\r\n\x7f\xff0Aa")])
    lines = message.split(b"\r\n")
    line = random.randrange(len(lines))
    return random.choice([
        message[:at] + byte + message[at + 1:], message[:at] + byte + message[at:], message[:at] + message[at + 1:],
        b"\r\n".join(lines[:line] + lines[line + 1:]), b"\r\n".join(lines[:line] + [lines[line]] + lines[line:]),
        message.replace(b"\r\n", b"\n", random.randrange(1, 9))])


check("LF only", status(right.replace(b"\r\n", b"\n")), 200)
check("CR only", status(right.replace(b"\r\n", b"\r"), seconds=0.3), 400, 0)
check("a CR in a value", status(post("Host: local\rhost", KEY, JSON, LENGTH)), 400)
check("a key after a CR", status(post(f"Host: localhost\r{KEY}", JSON, LENGTH)), 400)
chunked = post(HOST, KEY, JSON, "Transfer-Encoding: chunked", body=f"5\r\n{BODY[:5]}\r\n{len(BODY) - 5:x};a=b\r\n{BODY[5:]}\r\n0\r\n\r\n")
check("chunks", status(chunked), 200)
for _ in range(1000):
    message = damage(random.choice([right, right, chunked]))
    if random.random() < 0.2:
        message = damage(message)
    check(repr(message), status(message, seconds=0.3), *judge(message))
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
