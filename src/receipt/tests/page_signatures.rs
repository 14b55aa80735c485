//! The page takes exactly the keys and signatures that the command takes.

#![allow(clippy::unwrap_used, clippy::panic)]

mod node;

use curve25519_dalek::{
    EdwardsPoint, Scalar,
    constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION},
    traits::Identity as _,
};
use plimsoll_attestation::{PublicKey, base64};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};

const PARTS: [&str; 3] = ["01_bytes", "02_json", "03_signature"];

fn pem(point: &[u8; 32]) -> String {
    let mut der = hex::decode("302a300506032b6570032100").unwrap();
    der.extend(point);
    let body = base64::encode(&der);
    format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n")
}

/// Whether the page takes each key.
fn keys_by_page(keys: &[String]) -> Value {
    let main =
        "return Promise.all(input.map((pem) => readKey(pem).then((key) => key.id, (fault) => {
      if (!(fault instanceof Refusal)) throw fault;
      return null;
    })));";
    node::run(&PARTS, main, &json!(keys))
}

#[test]
fn keys() {
    let secret = Scalar::from(123_456_789_u64);
    let good = secret * ED25519_BASEPOINT_POINT;
    let mut points: Vec<[u8; 32]> = vec![good.compress().to_bytes()];
    for torsion in EIGHT_TORSION {
        points.push(torsion.compress().to_bytes());
        points.push((good + torsion).compress().to_bytes());
    }
    // Other spellings: y at or over the field's prime, and the sign of x = 0.
    for (first, last) in [
        (0xed, 0x7f),
        (0xee, 0x7f),
        (0xed, 0xff),
        (0xee, 0xff),
        (0xff, 0x7f),
    ] {
        let mut point = [0xff; 32];
        (point[0], point[31]) = (first, last);
        points.push(point);
    }
    let mut signed_zero = [0; 32];
    (signed_zero[0], signed_zero[31]) = (1, 0x80);
    points.push(signed_zero);
    for first in 0..64 {
        let mut point = [0; 32];
        point[0] = first;
        points.push(point);
    }
    let command: Vec<Value> = points
        .iter()
        .map(|point| PublicKey::from_bytes(point).map_or(Value::Null, |key| json!(key.id())))
        .collect();
    let taken = command.iter().filter(|id| !id.is_null()).count();
    assert!(taken > 1 && taken < points.len());
    let pems: Vec<String> = points.iter().map(pem).collect();
    assert_eq!(keys_by_page(&pems), Value::from(command));
}

#[test]
fn files_that_are_no_key() {
    let good = pem(&(Scalar::from(7_u64) * ED25519_BASEPOINT_POINT)
        .compress()
        .to_bytes());
    let bad = [
        String::new(),
        good.replace("PUBLIC", "PRIVATE"),
        good.replace('M', "N"),
        good.replace("=\n", "\n"),
        format!("{good}{good}"),
        good.replace("MCowBQ", "MCowBR"),
    ];
    for id in keys_by_page(&bad).as_array().unwrap() {
        assert_eq!(id, &Value::Null);
    }
}

fn challenge(r: &[u8; 32], key: &[u8; 32], message: &[u8]) -> Scalar {
    let hash = Sha512::new()
        .chain_update(r)
        .chain_update(key)
        .chain_update(message);
    Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
}

/// A signature whose R is `nonce * B + shift` and whose S fits it.
fn forged(secret: &Scalar, nonce: &Scalar, shift: EdwardsPoint, message: &[u8]) -> [u8; 64] {
    let key = (secret * ED25519_BASEPOINT_POINT).compress().to_bytes();
    let r = (nonce * ED25519_BASEPOINT_POINT + shift)
        .compress()
        .to_bytes();
    let s = nonce + challenge(&r, &key, message) * secret;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&r);
    signature[32..].copy_from_slice(s.as_bytes());
    signature
}

/// Adds the group's order to S: the same number, another spelling.
fn over_order(mut signature: [u8; 64]) -> [u8; 64] {
    let order =
        hex::decode("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010").unwrap();
    let mut carry = 0_u16;
    for (byte, add) in signature[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    signature
}

#[test]
fn signatures() {
    let secret = Scalar::from(987_654_321_u64);
    let nonce = Scalar::from(1_122_334_455_u64);
    let none = EdwardsPoint::identity();
    let public = (secret * ED25519_BASEPOINT_POINT).compress().to_bytes();
    let message = b"a message";
    let good = forged(&secret, &nonce, none, message);
    let mut cases = vec![good, over_order(good), [0; 64], [0xff; 64]];
    // R of small order with a fitting S, and R moved by a small-order point.
    for torsion in EIGHT_TORSION {
        cases.push(forged(&secret, &Scalar::ZERO, torsion, message));
        if torsion != none {
            cases.push(forged(&secret, &nonce, torsion, message));
        }
    }
    for bit in (0..512).step_by(7) {
        let mut changed = good;
        changed[bit / 8] ^= 1 << (bit % 8);
        cases.push(changed);
    }
    cases.push(forged(&secret, &nonce, none, b"another message"));
    let key = PublicKey::from_bytes(&public).unwrap();
    let command: Vec<bool> = cases
        .iter()
        .map(|case| key.verifies(message, case))
        .collect();
    assert_eq!(command.iter().filter(|good| **good).count(), 1);
    let main = "const key = await readKey(input.key);
      const bytes = (text) => Uint8Array.from(Buffer.from(text, 'base64'));
      return Promise.all(input.cases.map((one) => verifies(key, bytes(one), bytes(input.message))));";
    let encoded: Vec<String> = cases.iter().map(|case| base64::encode(case)).collect();
    let input = json!({"key": pem(&public), "cases": encoded, "message": base64::encode(message)});
    assert_eq!(node::run(&PARTS, main, &input), json!(command));
}
