"""A stand-in for an OpenTelemetry collector: takes OTLP/HTTP in JSON, and at its end checks what came.

collector.py PORT_FILE: serves until its stdin ends, then prints "SERVICE NAME PARENT" for each span, sorted, where PARENT is
the name of the parent span, or "-". The exit status is 1 if a span is not valid. opentelemetry-proto, where it is
installed, parses each body strictly."""

import base64
import http.server
import json
import sys
import threading

try:
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
except ImportError:
    json_format = None

bodies = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        good = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
        if good:
            bodies.append(json.loads(body))
        self.send_response(200 if good else 400)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *unused):
        pass


def parse(body):
    """By protobuf's JSON, in which OTLP writes ids in hexadecimal digits instead of base64."""
    for resource in body["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    json_format.ParseDict(body, trace_service_pb2.ExportTraceServiceRequest())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
with open(sys.argv[1], "w") as file:
    file.write(f"{server.server_port}\n")
sys.stdin.read()
spans, lines, failures = {}, [], 0
for body in bodies:
    for resource in body["resourceSpans"]:
        service = next(a["value"]["stringValue"] for a in resource["resource"]["attributes"] if a["key"] == "service.name")
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                spans[span["spanId"]] = dict(span, service=service)
for span in spans.values():
    values = {each["key"]: each["value"] for each in span.get("attributes", [])}
    if "gen_ai.operation.name" in values:  # the conventions for generative AI
        finish = [each["stringValue"] for each in values["gen_ai.response.finish_reasons"]["arrayValue"]["values"]]
        texts = [values[f"gen_ai.{key}"]["stringValue"] for key in ("operation.name", "request.model", "response.model", "provider.name")]
        lines.append(f"{span['name']}: {' '.join(texts)} {values['gen_ai.request.max_tokens']['intValue']} {finish}")
    parent = spans.get(span.get("parentSpanId"))
    begin, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
    good = len(span["traceId"]) == 32 and len(span["spanId"]) == 16 and 1.6e18 < begin <= end < 5e18
    if parent:
        slack = 0 if parent["service"] == span["service"] else 50_000_000  # two processes estimate their epochs
        good &= parent["traceId"] == span["traceId"] and int(parent["startTimeUnixNano"]) - slack <= begin
    if not good:
        failures += 1
        print("not valid:", json.dumps(span))
    lines.append(f"{span['service']}: {span['name']} < {parent['name'] if parent else span.get('parentSpanId', '-')}")
print("\n".join(sorted(lines)))
for body in bodies if json_format else []:
    parse(body)
sys.exit(1 if failures else 0)
