//! A statement someone wants signed: strict JSON, or refused; never a reserved type.
#![no_main]
use libfuzzer_sys::fuzz_target;
use plimsoll_attestation::own::{self, OwnStatement};

fuzz_target!(|data: &[u8]| {
    if let Ok(statement) = OwnStatement::from_payload(data.to_vec()) {
        assert_eq!(statement.payload(), data);
        assert!(!own::reserved::is_reserved(statement.predicate_type()));
        // As text: a number may be larger than any double and is kept as written.
        assert!(serde_json::from_slice::<&serde_json::value::RawValue>(data).is_ok());
    }
});
