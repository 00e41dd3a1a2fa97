"""Makes a container in a store that speaks the protocol of Azure's blob storage: azure_container.py ENDPOINT ACCOUNT KEY NAME"""

import base64
import email.utils
import hashlib
import hmac
import sys
import urllib.request

endpoint, account, key, name = sys.argv[1:]
date = email.utils.formatdate(usegmt=True)
headers = {"x-ms-date": date, "x-ms-version": "2021-08-06"}
path = f"/{account}/{name}"
# The verb, eleven headers that are not sent, those of the protocol, and what is asked for; the account is in the path, too.
signed = "PUT\n" + "\n" * 11 + "".join(f"{header}:{value}\n" for header, value in headers.items()) + f"/{account}{path}\nrestype:container"
signature = base64.b64encode(hmac.new(base64.b64decode(key), signed.encode(), hashlib.sha256).digest()).decode()
headers["Authorization"] = f"SharedKey {account}:{signature}"
request = urllib.request.Request(f"{endpoint}{path}?restype=container", method="PUT", headers=headers)
print(urllib.request.urlopen(request).status)
