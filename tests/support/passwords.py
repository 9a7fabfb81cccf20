"""URIs with credentials, in every form that a driver or a server takes them."""

from __future__ import annotations

FIRST, SECOND = "zq3x", "vk7y"
"""The two halves of every password; neither may be seen anywhere."""

URIS = {
    "plain": f"postgresql://me:{FIRST}@127.0.0.1:9/runs",
    "sign in it": f"postgresql://me:{FIRST}@{SECOND}@127.0.0.1:9/runs",
    "two signs in it": f"postgresql://me:@{FIRST}@{SECOND}@127.0.0.1:9/runs",
    "slash in it": f"postgresql://me:{FIRST}/{SECOND}@127.0.0.1:9/runs",
    "blank in it": f"postgresql://me:{FIRST} {SECOND}@127.0.0.1:9/runs",
    "colon in it": f"postgresql://me:{FIRST}:{SECOND}@127.0.0.1:9/runs",
    "hash in it": f"postgresql://me:{FIRST}#{SECOND}@127.0.0.1:9/runs",
    "question mark in it": f"postgresql://me:{FIRST}?{SECOND}@127.0.0.1:9/runs",
    "quote in it": f"postgresql://me:{FIRST}'{SECOND}@127.0.0.1:9/runs",
    "number in front": f"postgresql://me:5432 {FIRST} {SECOND}@127.0.0.1:9/runs",
    "percent-encoded": f"postgresql://me:{FIRST}%40{SECOND}@127.0.0.1:9/runs",
    "no user": f"postgresql://:{FIRST}{SECOND}@127.0.0.1:9/runs",
    "driver": f"mysql+pymysql://me:{FIRST}@127.0.0.1:9/runs",
    "parameter": f"postgresql://127.0.0.1:9/runs?user=me&password={FIRST}",
    "parameter in capitals": f"postgresql://127.0.0.1:9/runs?USER=me&PASSWORD={FIRST}",
    "parameter with a blank": f"postgresql://127.0.0.1:9/runs?password={FIRST} {SECOND}",
    "parameter with an encoded blank": f"postgresql://127.0.0.1:9/runs?password={FIRST}%20{SECOND}",
    "parameter with a sign": f"postgresql://127.0.0.1:9/runs?password={FIRST}@{SECOND}",
    "parameter with an encoded name": f"postgresql://127.0.0.1:9/runs?pass%77ord={FIRST}",
    "both": f"postgresql://me:{FIRST}@127.0.0.1:9/runs?sslpassword={SECOND}",
    "server": f"http://me:{FIRST}@127.0.0.1:9",
    "server with a sign": f"http://me:{FIRST}@{SECOND}@127.0.0.1:9",
    "token for a user": f"https://{FIRST}{SECOND}@127.0.0.1:9/mlflow",
    "token": f"http://127.0.0.1:9/mlflow?access_token={FIRST}",
    "quoted": f"'postgresql://me:{FIRST} {SECOND}@127.0.0.1:9/runs'",
    "words": f"host=127.0.0.1 user=me password={FIRST}",
    "words with quotes": f"host=127.0.0.1 user=me password='{FIRST} {SECOND}'",
    "encoded whole": f"postgresql%3A%2F%2Fme%3A{FIRST}%40127.0.0.1%3A9%2Fruns",
}
