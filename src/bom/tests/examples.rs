//! The worked examples, byte for byte.
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;

use common::{example, examples};

#[test]
fn the_examples_are_built_byte_for_byte() {
    for (name, built) in examples() {
        let expected = example(&format!("{name}.cdx.json"));
        let (built, expected) = (
            String::from_utf8(built).unwrap(),
            String::from_utf8(expected).unwrap(),
        );
        for (n, (a, b)) in built.lines().zip(expected.lines()).enumerate() {
            assert_eq!(a, b, "{name} line {}", n + 1);
        }
        assert_eq!(built, expected, "{name}");
    }
}
