"""Stream Loads by Python's own HTTP clients to a port that sends loads on to another one with 307.

  stream_load_checks.py urllib PORT DATABASE      a handler of urllib follows
  stream_load_checks.py http_client PORT DATABASE by hand: the address is read, and the load sent again with its credentials
"""

import base64
import http.client
import json
import urllib.parse
import urllib.request

from checking import equal, main

ROWS = 20_000
BODY = "".join(f"{number},name{number},7\n" for number in range(ROWS)).encode()
HEADERS = {
    "Authorization": "Basic " + base64.b64encode(b"root:").decode(),
    "Expect": "100-continue",
    "column_separator": ",",
}


def loaded(text):
    answer = json.loads(text)
    equal((answer["Status"], answer["NumberLoadedRows"]), ("Success", ROWS), text)


class Again(urllib.request.HTTPRedirectHandler):
    """Sends the same request again, as it is, which urllib does by itself for GET and HEAD only."""

    def redirect_request(self, request, fp, code, message, headers, newurl):
        equal(code, 307)
        parts = urllib.parse.urlsplit(newurl)
        equal((parts.username, parts.password), ("root", ""))
        plain = parts._replace(netloc=f"{parts.hostname}:{parts.port}").geturl()
        return urllib.request.Request(plain, request.data, request.headers, method=request.get_method())


def by_urllib(port, database):
    url = f"http://127.0.0.1:{port}/api/{database}/dt/_stream_load"
    request = urllib.request.Request(url, BODY, HEADERS, method="PUT")
    with urllib.request.build_opener(Again).open(request) as answer:
        loaded(answer.read())


def by_http_client(port, database):
    first = http.client.HTTPConnection("127.0.0.1", int(port))
    # The answer comes without the body, as it does for whoever waits for 100 Continue.
    first.putrequest("PUT", f"/api/{database}/dt/_stream_load")
    for name, value in {**HEADERS, "Content-Length": str(len(BODY))}.items():
        first.putheader(name, value)
    first.endheaders()
    sent_on = first.getresponse()
    equal(sent_on.status, 307)
    location = urllib.parse.urlsplit(sent_on.getheader("Location"))
    second = http.client.HTTPConnection(location.hostname, location.port)
    second.request("PUT", f"{location.path}?{location.query}", BODY, HEADERS)
    answer = second.getresponse()
    equal(answer.status, 200)
    loaded(answer.read())


main({"urllib": by_urllib, "http_client": by_http_client})
