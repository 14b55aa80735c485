//! proto3 JSON: what the strict scan accepts, a second parser accepts too, and
//! a message survives being written and read again, and its lists are counted
//! as they are read.
#![no_main]
use libfuzzer_sys::fuzz_target;
use plimsoll_record::request_digest;
use plimsoll_wire::{
    elements, json,
    proto::{Message, RunRequest, RunResponse},
    strict_json,
};

mod longest;
use longest::{MOST, longest};

fuzz_target!(|data: &[u8]| {
    let strict = strict_json::check(data).is_ok();
    let counted = elements::check_json("Run", data, MOST).is_ok();
    if let Ok(request) = json::read::<RunRequest>(data) {
        assert!(strict);
        assert_eq!(counted, longest(&request) <= MOST);
        let text = json::write(&request).expect("a read message is written");
        let again: RunRequest = json::read(text.as_bytes()).expect("written text reads");
        assert_eq!(request_digest(&again), request_digest(&request));
        assert_eq!(again.encode_to_vec(), request.encode_to_vec());
    }
    let _ = json::read::<RunResponse>(data);
    let _ = json::read_known::<RunRequest>(data);
});
