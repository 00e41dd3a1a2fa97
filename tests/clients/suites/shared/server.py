"""Starts and ends a server for a suite."""

import os
import pathlib
import re
import subprocess
import time

# How long a server may take to be ready, in seconds.
PATIENCE = 60


def certificate(directory):
    """Makes a certificate that no client trusts, and returns the settings of a server that has it."""
    file, key = str(directory / "certificate.pem"), str(directory / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", file, "-keyout", key],
        check=True, capture_output=True,
    )
    return {"TRIBUTARY_TLS_CERTIFICATE": file, "TRIBUTARY_TLS_PRIVATE_KEY": key}


class Server:
    """A server in a directory of its own, on ports that it picks; it ends with the `with` block."""

    def __init__(self, binary, directory, settings=None):
        self.binary, self.directory, self.settings = pathlib.Path(binary), pathlib.Path(directory), settings or {}

    def __enter__(self):
        self.directory.mkdir(parents=True, mode=0o700)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TRIBUTARY_")}
        environment.update(self.known_settings())
        self.log = open(self.directory.with_suffix(".log"), "w+")
        self.process = subprocess.Popen(
            [self.binary, "serve", "--storage-root-path", self.directory, "--bind", "127.0.0.1", "--query-port", "0",
             "--http-port", "0", "--webserver-port", "0"],
            stdout=self.log, stderr=subprocess.STDOUT, env=environment,
        )
        self.mysql, self.http = self.ports()
        return self

    def known_settings(self):
        """Returns the settings that this server knows, and names the others: an older server refuses to start with them."""
        listed = subprocess.run([self.binary, "config"], capture_output=True, text=True, check=True).stdout
        known = {}
        for name, value in self.settings.items():
            if re.search(rf"\b{name.removeprefix('TRIBUTARY_').lower()}\b", listed):
                known[name] = value
            else:
                print(f"this server has no setting {name.removeprefix('TRIBUTARY_').lower()}", flush=True)
        return known

    def ports(self):
        """Waits until the server is ready and returns the ports of MySQL's protocol and of HTTP."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.is_running():
            ready = re.search(r"tributary ready: mysql=\S+:(\d+) http=\S+:(\d+)", self.text())
            if ready:
                return int(ready[1]), int(ready[2])
            time.sleep(0.02)
        words = self.last_words()
        self.__exit__()
        raise RuntimeError(f"the server was not ready in {PATIENCE} s: {words}")

    def text(self):
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def last_words(self):
        return " | ".join(self.text().strip().splitlines()[-3:])

    def is_running(self):
        return self.process.poll() is None

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
