# SPDX-License-Identifier: MIT
"""A Flask application on Flask's own threaded server. /orders answers; the other views wait, each in another kind of code, until
the gate is opened. Says which port of loopback it listens on, and what Python itself knows of its threads: see truth.py."""

import functools
import logging
import os
import threading

import flask
import truth
import werkzeug.serving

app = flask.Flask(__name__)
pipe = os.pipe()
gate = threading.Lock()
gate.acquire()


class Orders:
    def rows(self, wait):
        for number in range(3):
            if number == 1:
                wait()
            yield {"number": number, "square": number * number}

    def find(self, wait):
        return sorted(self.rows(wait), key=lambda row: -row["number"])


def wait_for_lock():
    with gate:
        pass


def wait_for_pipe():
    os.read(pipe[0], 1)


def logged(view):
    @functools.wraps(view)
    def wrapper(*args, **named):
        return view(*args, **named)

    return wrapper


@app.route("/orders")
def orders():
    return flask.jsonify(Orders().find(lambda: None))


@app.route("/locked")
@logged
def locked():
    return flask.jsonify(Orders().find(wait_for_lock))


@app.route("/reading")
@logged
def reading():
    return flask.jsonify(Orders().find(wait_for_pipe))


@app.route("/template")
def template():
    text = "{% macro line(row) %}{{ row.number }}\n{% endmacro %}\n{% for row in rows() %}\n{{ line(row) }}{% endfor %}"
    return flask.render_template_string(text, rows=lambda: Orders().find(wait_for_lock))


def open_gate():
    gate.release()
    os.write(pipe[1], b"x")


logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = werkzeug.serving.make_server("127.0.0.1", 0, app, threaded=True)
threading.Thread(target=truth.answer, kwargs={"port": lambda: server.server_port, "open": open_gate}, daemon=True).start()
print("ready", flush=True)
server.serve_forever()
