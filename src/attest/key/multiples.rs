//! Signature checks under one key for many messages.
//!
//! A bundle is signed by one key. Both points of the verification equation,
//! the base point B and the negated key -A, are then known beforehand, and
//! their multiples are kept: a check is two walks through a table instead of
//! 256 doublings. Nothing here is secret, so the walks need no constant time.
//!
//! The verdict is that of RFC 8032 verified strictly, for every input: S must
//! be canonical, and R must be, byte for byte, the encoding of `S·B - k·A` and
//! not of small order. An encoding that is equal to one just computed is
//! canonical and decodes to that very point, so R itself is never decoded.
//! Signatures are not combined: a batch of them could pass or fail together
//! with another verdict than one by one.

use std::sync::OnceLock;

use curve25519_dalek::{
    EdwardsPoint, Scalar, constants::ED25519_BASEPOINT_POINT, traits::Identity as _,
};
use sha2::{Digest as _, Sha512};

/// Bits of a scalar that one table row covers. Wider rows save additions until
/// the tables no longer fit a core's second-level cache.
const WIDTH: usize = 7;
/// Rows for 256 bits: a canonical scalar has 253, so the last carry has room.
const ROWS: usize = 256_usize.div_ceil(WIDTH);
/// Points of a row: digits are signed, which halves it.
const HALF: usize = 1 << (WIDTH - 1);

/// The multiples of one point: row `i` holds 1 to [`HALF`] times `2^(7i)`
/// times the point.
pub(super) struct Multiples(Box<[EdwardsPoint]>);

impl Multiples {
    fn of(point: EdwardsPoint) -> Self {
        let mut points = Vec::with_capacity(ROWS * HALF);
        let mut base = point;
        for _ in 0..ROWS {
            let mut multiple = base;
            for _ in 1..HALF {
                points.push(multiple);
                multiple += base;
            }
            points.push(multiple);
            base = multiple + multiple;
        }
        Multiples(points.into_boxed_slice())
    }

    /// Adds `scalar` times the point.
    fn add_to(&self, sum: &mut EdwardsPoint, scalar: &Scalar) {
        let bytes = scalar.as_bytes();
        let mut carry = 0;
        for (place, row) in self.0.chunks_exact(HALF).enumerate() {
            let bit = place * WIDTH;
            let low = u16::from(bytes[bit / 8]);
            let high = bytes
                .get(bit / 8 + 1)
                .map_or(0, |byte| u16::from(*byte) << 8);
            let window = usize::from((low | high) >> (bit % 8)) & (2 * HALF - 1);
            // A digit above HALF is written as itself less 2·HALF, and one more
            // in the next row.
            let digit = window + carry;
            carry = usize::from(digit > HALF);
            if carry == 1 {
                if let Some(point) = (2 * HALF - digit).checked_sub(1) {
                    *sum -= &row[point];
                }
            } else if let Some(point) = digit.checked_sub(1) {
                *sum += &row[point];
            }
        }
    }
}

/// A key whose multiples are kept.
pub(super) struct FixedKey {
    bytes: [u8; 32],
    negated: Multiples,
}

impl FixedKey {
    /// `point` is the key's; it must be of the prime-order subgroup, as every
    /// key of this crate is.
    pub(super) fn new(point: EdwardsPoint) -> Self {
        FixedKey {
            bytes: point.compress().to_bytes(),
            negated: Multiples::of(-point),
        }
    }

    /// Whether the signature over `message` verifies, strictly.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let (r, s) = signature.split_at(32);
        let Ok(s) = <[u8; 32]>::try_from(s) else {
            return false;
        };
        let Some(s) = Option::<Scalar>::from(Scalar::from_canonical_bytes(s)) else {
            return false;
        };
        let hash = Sha512::new()
            .chain_update(r)
            .chain_update(self.bytes)
            .chain_update(message)
            .finalize();
        let k = Scalar::from_bytes_mod_order_wide(&hash.into());
        let mut sum = EdwardsPoint::identity();
        self.negated.add_to(&mut sum, &k);
        base_point().add_to(&mut sum, &s);
        sum.compress().as_bytes() == r && !sum.is_small_order()
    }
}

/// The base point's multiples, the same for every key.
fn base_point() -> &'static Multiples {
    static BASE: OnceLock<Multiples> = OnceLock::new();
    BASE.get_or_init(|| Multiples::of(ED25519_BASEPOINT_POINT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(scalar: &Scalar) -> EdwardsPoint {
        let mut sum = EdwardsPoint::identity();
        base_point().add_to(&mut sum, scalar);
        sum
    }

    #[test]
    fn every_digit_and_carry_is_the_multiple() {
        let order_less_one = -Scalar::ONE;
        let mut scalars = vec![Scalar::ZERO, Scalar::ONE, order_less_one];
        for digit in 0..2 * HALF as u64 + 1 {
            scalars.push(Scalar::from(digit));
            scalars.push(order_less_one - Scalar::from(digit));
        }
        for bit in 0..253 {
            let power = (0..bit).fold(Scalar::ONE, |power, _| power + power);
            scalars.push(power);
            scalars.push(power - Scalar::ONE);
        }
        for scalar in scalars {
            assert_eq!(
                times(&scalar),
                EdwardsPoint::mul_base(&scalar),
                "{scalar:?}"
            );
        }
    }
}
