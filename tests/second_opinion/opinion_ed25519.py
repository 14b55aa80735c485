"""Ed25519 as the holder of the test key can do it by hand: signatures and keys that no honest signer makes."""

from __future__ import annotations

import hashlib

from opinion_both import verify
from opinion_forge import KEY, b64

P, L = verify.P, verify.L
BASE_Y = 4 * pow(5, -1, P) % P


def encoded(point: tuple[int, int], sign: int | None = None, add_p: bool = False) -> bytes:
    """A point's 32 bytes; with another sign bit or y + p when asked for a spelling that is not canonical."""
    x, y = point
    bit = x & 1 if sign is None else sign
    return (y + P * add_p | bit << 255).to_bytes(32, "little")


BASE = verify.point(BASE_Y.to_bytes(32, "little"))
SEED = KEY.private_bytes_raw()
EXPANDED = hashlib.sha512(SEED).digest()
SECRET = int.from_bytes(EXPANDED[:32], "little") & (1 << 254) - 8 | 1 << 254
PUBLIC = KEY.public_key().public_bytes_raw()


def torsion() -> list[tuple[int, int]]:
    """The eight small-order points, as multiples of one of order 8."""
    generator = verify.point(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"))
    return [verify.multiply(n, generator) for n in range(8)]


def crafted(message: bytes, r: int, r_bytes: bytes | None = None, extra: tuple[int, int] = (0, 1)) -> bytes:
    """What the key's holder can make of R = r·B + extra, written as `r_bytes` if given: S solves S·B = r·B + k·A."""
    point = verify.add(verify.multiply(r, BASE), extra)
    r_bytes = r_bytes or encoded(point)
    k = int.from_bytes(hashlib.sha512(r_bytes + PUBLIC + message).digest(), "little") % L
    return r_bytes + ((r + k * SECRET) % L).to_bytes(32, "little")


# Other spellings of small-order points: y + p, and a sign bit on x = 0.
SPELLINGS = {
    "1 with the sign bit": encoded((0, 1), sign=1),
    "-1 with the sign bit": encoded((0, P - 1), sign=1),
    "p": encoded((0, 0), sign=0, add_p=True),
    "p with the sign bit": encoded((0, 0), sign=1, add_p=True),
    "p + 1": encoded((0, 1), sign=0, add_p=True),
    "p + 1 with the sign bit": encoded((0, 1), sign=1, add_p=True),
}


def pem(point: bytes) -> bytes:
    return b"-----BEGIN PUBLIC KEY-----\n%b\n-----END PUBLIC KEY-----\n" % b64(verify.PUBLIC_DER + point).encode()
