"""A model that answers the router: keywords, and decisions for the edge. keywords.py PORT_FILE LOG [SECONDS before each answer]

LOG gets a line of each request: "keywords REQUEST", or "decide KEYWORDS".
"""

import http.server
import json
import os
import sys
import time

path, log, delay = sys.argv[1], open(sys.argv[2], "w", buffering=1), float(sys.argv[3]) if len(sys.argv) > 3 else 0


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt, choice = body.get("prompt", ""), {"index": 0, "finish_reason": "length"}
        time.sleep(delay)
        if prompt.endswith("\nKeywords:"):
            assert body["max_tokens"] == 16 and "Reply only with the keywords" in prompt, body
            print("keywords", prompt.rsplit("Request: ", 1)[1].split("\n")[0], file=log)
            choice["text"] = ' Story; "Telling", LONG answer!\nReward: 3'
        else:
            print("decide", prompt.rsplit("Keywords: ", 1)[1].split("\n")[0], file=log)
            choice |= {"text": " edge", "logprobs": {"top_logprobs": [{" edge": -0.1, " cloud": -3.0}]}}
        data = json.dumps({"choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data)
        except BrokenPipeError:
            pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
with open(path + ".new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename(path + ".new", path)
server.serve_forever()
