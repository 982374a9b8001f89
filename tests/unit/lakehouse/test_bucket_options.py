"""Options of buckets reach the library that opens them, those of its HTTP client too."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from magnetar.lakehouse.files.file_store import FileStore
from magnetar.model.errors import InvalidValueError


@pytest.mark.parametrize("name", ["aws_allow_http", "allow_http", "AWS_ALLOW_HTTP"])
def test_a_bucket_is_read_over_plain_http_if_that_is_allowed(name: str) -> None:
    """The library panicked, with a traceback for the user, about the name that delta-rs has for this."""

    class Bucket(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            for header, value in (
                ("Content-Length", "5"),
                ("ETag", "e"),
                ("Last-Modified", "Mon, 30 Nov 2026 07:00:00 GMT"),
            ):
                self.send_header(header, value)
            self.end_headers()
            self.wfile.write(self.path.encode()[-5:])

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Bucket) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            options = {
                "aws_skip_signature": "true",
                "aws_endpoint": f"http://127.0.0.1:{server.server_port}",
                name: "true",
            }
            assert FileStore("s3://b/t", options).read("x") == b"b/t/x"
        finally:
            server.shutdown()


def test_a_wrong_value_for_the_client_is_said_in_one_line() -> None:
    with pytest.raises(InvalidValueError, match=r"s3://b/t cannot be opened: .*perhaps.*; see options storage"):
        FileStore("s3://b/t", {"aws_skip_signature": "true", "aws_allow_http": "perhaps"})
