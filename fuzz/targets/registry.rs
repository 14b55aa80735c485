//! Registries of callers: read or refused with bounded words; what is read is
//! written, reads back the same, and any JSON reader agrees on its callers.
#![no_main]
use libfuzzer_sys::fuzz_target;
use plimsoll_callers::Registry;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    match Registry::parse(data) {
        Ok(registry) => {
            let text = registry.to_text().expect("a read registry is written");
            let again = Registry::parse(text.as_bytes()).expect("written text reads");
            assert_eq!(again, registry);
            let value: Value = serde_json::from_slice(data).expect("another reader agrees");
            let clients = value["clients"].as_array().expect("an array");
            assert_eq!(clients.len(), registry.callers().len());
            for (client, caller) in clients.iter().zip(registry.callers()) {
                assert_eq!(client["id"].as_str().map(str::trim), Some(caller.id.as_str()));
                let paid = client.get("paid_seconds_per_day").map_or(Some(0), Value::as_u64);
                assert_eq!(paid, Some(caller.paid_seconds_per_day));
            }
        }
        Err(faults) => assert!(!faults.kept().is_empty() && faults.to_string().len() < 100_000),
    }
});
