# SPDX-License-Identifier: MIT
"""Debuginfod servers that behave badly, on the loopback interface."""

import http.server
import threading


class Server:
    """Answers every request in one way: `answer(handler)`; `asked` is set with the first."""

    def __init__(self, answer):
        self.requests, self.asked, self.over = [], threading.Event(), threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(self.path)
                outer.asked.set()
                answer(self, outer)

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/"
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()

    def end(self):
        self.over.set()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


def not_found(handler, server):
    handler.send_error(404)


def garbage(handler, server):
    page = b"<html>Please log in</html>"
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(page)))
    handler.end_headers()
    handler.wfile.write(page)


def stall(handler, server):
    server.over.wait()


def stall_half_way(handler, server):
    handler.send_response(200)
    handler.send_header("Content-Length", "20000000")
    handler.end_headers()
    handler.wfile.write(bytes(10000000))
    handler.wfile.flush()
    server.over.wait()
