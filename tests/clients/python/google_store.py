"""A store with the part of Google's cloud storage that Tributary and Delta's readers use, for tests.

  google_store.py BUCKET PUBLIC_KEY_FILE

Objects are in memory. It speaks the XML API: objects with generations and preconditions, ranges, lists of version 2, and uploads of several
parts with their list. Every request needs a token that the private key of the service account has signed. Not here: other APIs, ACLs, and
everything that the clients do not ask for. Tests begin uploads by `POST /_uploads/KEY`, and GET lists the keys of unfinished ones, without a token.
It says where it listens in its first line.
"""

import base64
import email.utils
import hashlib
import http.server
import json
import re
import sys
import threading
import time
import urllib.parse
import uuid
from xml.sax.saxutils import escape

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding

PAGE_KEYS = 1000


class Store:
    """The objects of one bucket and its unfinished uploads."""

    def __init__(self, bucket):
        self.bucket = bucket
        self.lock = threading.Lock()
        self.objects = {}
        self.uploads = {}
        self.generation = 0

    def put(self, key, body, expected):
        """Stores an object whose generation is `expected` (0: none is there; None: any). None: it is another."""
        with self.lock:
            there = self.objects.get(key)
            if expected is not None and expected != (there["generation"] if there else 0):
                return None
            self.generation += 1
            made = {"body": body, "generation": self.generation, "time": time.time(), "etag": etag(body)}
            self.objects[key] = made
            return made


def etag(body):
    return '"' + hashlib.md5(body).hexdigest() + '"'


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def signer_of(token, key):
    """The account that has signed a token. None: nobody, or it is over."""
    try:
        head, claims, signature = token.split(".")
        key.verify(decoded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256())
        claims = json.loads(decoded(claims))
    except (ValueError, InvalidSignature):
        return None
    return claims["iss"] if claims["exp"] > time.time() else None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = None
    key = None

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if "Content-Length" not in dict(headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code, text):
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{text}</Message></Error>"
        self.answer(status, body.encode(), [("Content-Type", "application/xml")])

    def xml(self, text):
        self.answer(200, ("<?xml version='1.0' encoding='UTF-8'?>" + text).encode(), [("Content-Type", "application/xml")])

    def asked(self):
        """Reads the request. Returns the key, the query and the body; None: it was refused."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        bucket, _, key = url.path.lstrip("/").partition("/")
        if bucket == "_uploads":
            with self.store.lock:
                if key:
                    self.store.uploads[uuid.uuid4().hex] = {"key": key, "parts": {}}
                keys = sorted(upload["key"] for upload in self.store.uploads.values())
            return self.answer(200, "".join(f"{key}\n" for key in keys).encode())
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if signer_of(token, self.key) is None:
            return self.refuse(401, "AuthenticationRequired", "The token is not of the account.")
        if urllib.parse.unquote(bucket) != self.store.bucket:
            return self.refuse(404, "NoSuchBucket", "The specified bucket does not exist.")
        return urllib.parse.unquote(key), query, body

    def do_PUT(self):
        asked = self.asked()
        if asked is None:
            return
        key, query, body = asked
        if "uploadId" in query:
            with self.store.lock:
                upload = self.store.uploads.get(query["uploadId"])
                if upload is not None:
                    upload["parts"][int(query["partNumber"])] = body
            if upload is None:
                return self.refuse(404, "NoSuchUpload", "The upload is not there.")
            return self.answer(200, b"", [("ETag", etag(body))])
        expected = self.headers.get("x-goog-if-generation-match")
        made = self.store.put(key, body, None if expected is None else int(expected))
        if made is None:
            return self.refuse(412, "PreconditionFailed", "The generation is another.")
        self.answer(200, b"", [("ETag", made["etag"]), ("x-goog-generation", str(made["generation"]))])

    def do_POST(self):
        asked = self.asked()
        if asked is None:
            return
        key, query, body = asked
        if "uploads" in query:
            upload = uuid.uuid4().hex
            with self.store.lock:
                self.store.uploads[upload] = {"key": key, "parts": {}}
            return self.xml(
                f"<InitiateMultipartUploadResult><Bucket>{self.store.bucket}</Bucket><Key>{escape(key)}</Key>"
                f"<UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            )
        with self.store.lock:
            upload = self.store.uploads.pop(query["uploadId"], None)
        if upload is None:
            return self.refuse(404, "NoSuchUpload", "The upload is not there.")
        numbers = [int(number) for number in re.findall(r"<PartNumber>(\d+)</PartNumber>", body.decode())]
        made = self.store.put(key, b"".join(upload["parts"][number] for number in numbers), None)
        self.xml(
            f"<CompleteMultipartUploadResult><Bucket>{self.store.bucket}</Bucket><Key>{escape(key)}</Key>"
            f"<ETag>{escape(made['etag'])}</ETag></CompleteMultipartUploadResult>"
        )

    def do_GET(self):
        asked = self.asked()
        if asked is None:
            return
        key, query, _ = asked
        if not key:
            return self.uploads(query) if "uploads" in query else self.list(query)
        with self.store.lock:
            found = self.store.objects.get(key)
        if found is None:
            return self.refuse(404, "NoSuchKey", "The specified key does not exist.")
        body, headers = found["body"], [
            ("ETag", found["etag"]),
            ("x-goog-generation", str(found["generation"])),
            ("Last-Modified", email.utils.formatdate(found["time"], usegmt=True)),
        ]
        if self.headers.get("If-None-Match") == found["etag"]:
            return self.answer(304, b"", headers)
        if self.headers.get("If-Match", found["etag"]) != found["etag"]:
            return self.refuse(412, "PreconditionFailed", "The object is another.")
        ranged = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not ranged:
            return self.answer(200, body, [*headers, ("Content-Length", str(len(body)))])
        first, last = ranged.groups()
        if first:
            start, end = int(first), min(int(last) + 1 if last else len(body), len(body))
        else:
            start, end = max(len(body) - int(last), 0), len(body)
        if start >= len(body):
            return self.refuse(416, "InvalidRange", "The range is behind the object.")
        headers += [("Content-Range", f"bytes {start}-{end - 1}/{len(body)}")]
        self.answer(206, body[start:end], headers)

    do_HEAD = do_GET

    def do_DELETE(self):
        asked = self.asked()
        if asked is None:
            return
        key, query, _ = asked
        with self.store.lock:
            where = self.store.uploads if "uploadId" in query else self.store.objects
            found = where.pop(query.get("uploadId", key), None)
        if found is None:
            return self.refuse(404, "NoSuchKey", "The specified key does not exist.")
        self.answer(204)

    def list(self, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = max(query.get("start-after", ""), query.get("continuation-token", ""))
        most = min(int(query.get("max-keys", PAGE_KEYS)), PAGE_KEYS)
        with self.store.lock:
            found = sorted((key, known) for key, known in self.store.objects.items() if key.startswith(prefix))
        parts, prefixes, last, is_cut = [], set(), "", False
        for key, known in found:
            rest = key[len(prefix):]
            common = prefix + rest.partition(delimiter)[0] + delimiter if delimiter and delimiter in rest else None
            if (common or key) <= after or common in prefixes:
                continue
            if len(parts) + len(prefixes) == most:
                is_cut = True
                break
            last = common or key
            if common:
                prefixes.add(common)
                continue
            changed = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(known["time"]))
            parts.append(
                f"<Contents><Key>{escape(key)}</Key><Generation>{known['generation']}</Generation>"
                f"<LastModified>{changed}</LastModified><ETag>{escape(known['etag'])}</ETag>"
                f"<Size>{len(known['body'])}</Size></Contents>"
            )
        parts += [f"<CommonPrefixes><Prefix>{escape(common)}</Prefix></CommonPrefixes>" for common in sorted(prefixes)]
        if is_cut:
            parts.append(f"<NextContinuationToken>{escape(last)}</NextContinuationToken>")
        self.xml(
            f"<ListBucketResult><Name>{self.store.bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>{''.join(parts)}</ListBucketResult>"
        )

    def uploads(self, query):
        with self.store.lock:
            found = sorted((upload["key"], number) for number, upload in self.store.uploads.items())
        parts = [
            f"<Upload><Key>{escape(key)}</Key><UploadId>{number}</UploadId></Upload>"
            for key, number in found
            if key.startswith(query.get("prefix", ""))
        ]
        self.xml(
            f"<ListMultipartUploadsResult><Bucket>{self.store.bucket}</Bucket><IsTruncated>false</IsTruncated>"
            f"{''.join(parts)}</ListMultipartUploadsResult>"
        )


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Leaves it to the tests to notice: a client that is killed is no fault."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def main():
    bucket, key = sys.argv[1:]
    Handler.store = Store(bucket)
    with open(key, "rb") as file:
        Handler.key = serialization.load_pem_public_key(file.read())
    server = Server(("127.0.0.1", 0), Handler)
    print(f"listens on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


main()
