# SPDX-License-Identifier: MIT
"""A threaded HTTP server under load, which it makes by itself, and an event loop with hundreds of tasks that wait."""

import asyncio
import http.client
import http.server
import json
import sys
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def do_GET(self):
        body = json.dumps([{"path": self.path, "squares": [n * n for n in range(200)]}]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *what):
        pass


async def worker(number, turn):
    while True:
        async with turn:
            await asyncio.sleep(0.01)


async def loop(count):
    turn = asyncio.Semaphore(7)
    await asyncio.gather(*(worker(number, turn) for number in range(count)))


def load(port):
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/orders")
        connection.getresponse().read()
        connection.close()


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, name="accepting", daemon=True).start()
for number in range(4):
    threading.Thread(target=load, args=(server.server_address[1],), name=f"client {number}", daemon=True).start()
threading.Thread(target=lambda: asyncio.run(loop(300)), name="events", daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
