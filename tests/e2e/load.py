# SPDX-License-Identifier: MIT
"""Requests to a server on loopback, while something else is done to it."""

import http.client
import threading

from harness import TIMEOUT, wait_until


def get(port, path):
    """Status and body of one request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2 * TIMEOUT)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Load:
    """Clients that ask for `path` again and again, and one for each of `once`, which may wait for its answer."""

    def __init__(self, port, path, clients=3, once=()):
        self.answered, self.failures, self._over = 0, [], threading.Event()
        self._endless = [threading.Thread(target=self._repeat, args=(port, path)) for _ in range(clients)]
        self._once = [threading.Thread(target=self._ask, args=(port, one)) for one in once]

    def __enter__(self):
        for thread in self._endless + self._once:
            thread.start()
        return self

    def __exit__(self, *why):
        self._over.set()
        for thread in self._endless + self._once:
            thread.join()

    def _ask(self, port, path):
        try:
            status, body = get(port, path)
            if status != 200 or not body:
                self.failures.append((path, status, body))
        except (OSError, http.client.HTTPException) as error:
            self.failures.append((path, error))
        self.answered += 1

    def _repeat(self, port, path):
        while not self._over.is_set() and not self.failures:
            self._ask(port, path)

    def go_on(self, answers=5):
        """Until so many more requests were answered."""
        enough = self.answered + answers
        wait_until(lambda: self.answered >= enough or self.failures, "requests are answered")
        assert not self.failures

    def finish_once(self):
        """Until those that were asked for once have their answers."""
        for thread in self._once:
            thread.join(TIMEOUT)
            assert not thread.is_alive(), "a request was never answered"
        assert not self.failures
