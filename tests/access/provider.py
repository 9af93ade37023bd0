"""A small OpenID Connect provider over HTTP: code flow with PKCE, signed tokens, user info.

It signs everyone in at once as ``claims`` say; ``lies`` replace parts of what it tells.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "hami-web", "s3cret of the client"


class Provider:
    def __init__(self) -> None:
        self.claims: dict[str, Any] = {"sub": "u1", "preferred_username": "ann", "groups": []}
        self.lies: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {}
        self.is_broken = False
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.signing_key = self.key
        self._codes: dict[str, dict[str, str]] = {}
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def description(self) -> dict[str, Any]:
        return {
            "issuer": self.lies.get("issuer", self.issuer),
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        }

    def keys(self) -> dict[str, Any]:
        key = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**key, "kid": "1", "alg": "RS256", "use": "sig"}]}

    def authorize(self, query: dict[str, str]) -> str:
        """Remember what was asked for and return where the browser goes next."""
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(8)
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """Give tokens for a code, once, to whoever began and knows the secret."""
        expected = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        asked = self._codes.pop(form.get("code", ""), None)
        if asked is None or authorization != f"Basic {expected}":
            return None
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if challenge != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
            return None
        now = int(time.time())
        payload = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            **self.claims,
            **self.lies,
        }
        told = {name: value for name, value in payload.items() if value is not None}
        signed = jwt.encode(told, self.signing_key, algorithm="RS256", headers={"kid": "1"})
        return {"access_token": "access", "token_type": "Bearer", "id_token": signed}


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            match url.path:
                case "/.well-known/openid-configuration":
                    self._answer(provider.description())
                case "/keys":
                    self._answer(provider.keys())
                case "/userinfo":
                    assert self.headers["Authorization"] == "Bearer access"
                    self._answer({"sub": provider.claims["sub"], **provider.userinfo})
                case "/authorize":
                    self.send_response(302)
                    self.send_header("Location", provider.authorize(query))
                    self.end_headers()

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            form = parse_qs(self.rfile.read(length).decode())
            answer = provider.token(
                {name: values[0] for name, values in form.items()},
                self.headers.get("Authorization", ""),
            )
            self._answer(answer or {"error": "invalid_grant"}, 200 if answer else 400)

        def _answer(self, body: dict[str, Any], status: int = 200) -> None:
            data = json.dumps(body).encode()
            self.send_response(500 if provider.is_broken else status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_arguments: object) -> None:
            pass

    return Handler
