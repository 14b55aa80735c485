//! The edge cases of Ed25519, for both ways a signature is checked.
#![allow(clippy::unwrap_used)]

mod common;

use common::signing;
use curve25519_dalek::{EdwardsPoint, Scalar, traits::Identity as _};
use ed25519_dalek::Verifier as _;
use plimsoll_attestation::{KeyFault, PublicKey};
use sha2::{Digest as _, Sha512};

fn point(hex: &str) -> [u8; 32] {
    hex::decode(hex).unwrap().try_into().unwrap()
}

/// The eight small-order points and their other spellings.
const SMALL_ORDER: [&str; 14] = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
];

#[test]
fn weak_points_are_no_public_keys() {
    for hex in SMALL_ORDER {
        assert_eq!(
            PublicKey::from_bytes(&point(hex)),
            Err(KeyFault::WeakPoint),
            "{hex}"
        );
    }
    // A good key plus a small-order point is of mixed order.
    let good = ed25519_dalek::VerifyingKey::from_bytes(signing().public().as_bytes()).unwrap();
    for hex in &SMALL_ORDER[1..8] {
        let small = ed25519_dalek::VerifyingKey::from_bytes(&point(hex)).unwrap();
        let mixed = (good.to_edwards() + small.to_edwards()).compress();
        assert_eq!(
            PublicKey::from_bytes(mixed.as_bytes()),
            Err(KeyFault::WeakPoint)
        );
    }
    // No point at all, and y over the field's prime.
    let mut none = [0; 32];
    none[0] = 2;
    assert_eq!(PublicKey::from_bytes(&none), Err(KeyFault::WeakPoint));
    assert_eq!(PublicKey::from_bytes(&[0xff; 32]), Err(KeyFault::WeakPoint));
}

/// The key as it is and with its multiples at hand.
fn both_ways(secret: &ed25519_dalek::SigningKey) -> [PublicKey; 2] {
    let public = PublicKey::from_bytes(secret.verifying_key().as_bytes()).unwrap();
    let prepared = public.prepared();
    assert_eq!(public, prepared);
    [public, prepared]
}

#[test]
fn signatures_are_checked_strictly() {
    let secret = ed25519_dalek::SigningKey::from_bytes(&[9; 32]);
    for public in both_ways(&secret) {
        strictly(&secret, &public);
    }
}

fn strictly(secret: &ed25519_dalek::SigningKey, public: &PublicKey) {
    let message = b"message";
    let good = ed25519_dalek::Signer::sign(secret, message).to_bytes();
    assert!(public.verifies(message, &good));
    assert!(!public.verifies(b"massage", &good));

    // S plus the group's order is another spelling of S.
    let order = point("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let mut larger = good;
    let mut carry = 0;
    for (byte, add) in larger[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        *byte = sum as u8;
        carry = sum >> 8;
    }
    assert!(!public.verifies(message, &larger));
    let mut high = good;
    high[63] |= 0xe0;
    assert!(!public.verifies(message, &high));

    // R of small order: the equation holds for the holder of the key, and a
    // lenient verifier accepts it.
    let identity = EdwardsPoint::identity().compress().to_bytes();
    let signed_with = |r: [u8; 32]| {
        let hash = Sha512::new()
            .chain_update(r)
            .chain_update(public.as_bytes())
            .chain_update(message);
        let k = Scalar::from_bytes_mod_order_wide(&hash.finalize().into());
        let s = k * secret.to_scalar();
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(&r);
        signature[32..].copy_from_slice(s.as_bytes());
        signature
    };
    let small = signed_with(identity);
    let lenient = ed25519_dalek::Signature::from_bytes(&small);
    assert!(secret.verifying_key().verify(message, &lenient).is_ok());
    assert!(!public.verifies(message, &small));
    for hex in SMALL_ORDER {
        assert!(!public.verifies(message, &signed_with(point(hex))), "{hex}");
    }
    assert!(!public.verifies(message, &[0; 64]));
}

/// A signature as a forger who holds the key, or not, may make one: R and S
/// are drawn from what is near a border of the rules.
fn crafted(
    secret: &ed25519_dalek::SigningKey,
    message: &[u8],
    r: usize,
    s: usize,
    nonce: u64,
) -> [u8; 64] {
    let a = secret.to_scalar();
    let nonce = Scalar::from(nonce) + Scalar::from(3u64) * a;
    let honest = EdwardsPoint::mul_base(&nonce);
    let small = |place: usize| {
        let bytes = curve25519_dalek::edwards::CompressedEdwardsY(point(SMALL_ORDER[place]));
        bytes.decompress().unwrap_or_default()
    };
    let r: [u8; 32] = match r {
        0 => honest.compress().to_bytes(),
        // Mixed order, small order and the second spellings of points.
        place @ 1..8 => (honest + small(place)).compress().to_bytes(),
        place @ 8..22 => point(SMALL_ORDER[place - 8]),
        22 => [0xff; 32],
        _ => {
            let mut bytes = honest.compress().to_bytes();
            bytes[31] ^= 0x80;
            bytes
        }
    };
    let hash = Sha512::new()
        .chain_update(r)
        .chain_update(secret.verifying_key().as_bytes())
        .chain_update(message);
    let k = Scalar::from_bytes_mod_order_wide(&hash.finalize().into());
    let order = point("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let plus_order = |bytes: [u8; 32]| {
        let mut carry = 0;
        let mut sum = bytes;
        for (byte, add) in sum.iter_mut().zip(order) {
            let value = u16::from(*byte) + u16::from(add) + carry;
            *byte = value as u8;
            carry = value >> 8;
        }
        sum
    };
    let s: [u8; 32] = match s {
        0 => (nonce + k * a).to_bytes(),
        1 => (k * a).to_bytes(),
        2 => plus_order((nonce + k * a).to_bytes()),
        3 => plus_order((k * a).to_bytes()),
        4 => order,
        5 => (-Scalar::ONE).to_bytes(),
        6 => [0; 32],
        7 => [0xff; 32],
        _ => (nonce + k * a + Scalar::ONE).to_bytes(),
    };
    [r, s].concat().try_into().unwrap()
}

#[test]
fn crafted_signatures_have_one_verdict() {
    let secret = ed25519_dalek::SigningKey::from_bytes(&[3; 32]);
    let [plain, prepared] = both_ways(&secret);
    let mut accepted = 0;
    for r in 0..24 {
        for s in 0..9 {
            for nonce in 0..3 {
                let message = [r as u8, s as u8, nonce as u8];
                let signature = crafted(&secret, &message, r, s, nonce);
                let verdict = plain.verifies(&message, &signature);
                assert_eq!(
                    prepared.verifies(&message, &signature),
                    verdict,
                    "{r} {s} {nonce}"
                );
                accepted += usize::from(verdict);
            }
        }
    }
    // The honest ones alone.
    assert_eq!(accepted, 3);
}

proptest::proptest! {
    #[test]
    fn both_ways_of_checking_give_one_verdict(
        seed in 0u8..8,
        message in proptest::collection::vec(0u8.., 0..300),
        flip in proptest::option::of(0usize..512),
        noise in proptest::option::of((0usize..64, 0u8..)),
    ) {
        let secret = ed25519_dalek::SigningKey::from_bytes(&[seed; 32]);
        let [plain, prepared] = both_ways(&secret);
        let mut signature = ed25519_dalek::Signer::sign(&secret, &message).to_bytes();
        if let Some(bit) = flip {
            signature[bit / 8] ^= 1 << (bit % 8);
        }
        if let Some((at, byte)) = noise {
            signature[at] = byte;
        }
        let verdict = plain.verifies(&message, &signature);
        proptest::prop_assert_eq!(prepared.verifies(&message, &signature), verdict);
        proptest::prop_assert_eq!(verdict, signature == ed25519_dalek::Signer::sign(&secret, &message).to_bytes());
    }
}
