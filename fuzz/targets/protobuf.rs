//! Binary messages: decoding refuses or gives a message whose encoding is stable
//! and whose lists are as long as they were counted.
#![no_main]
use libfuzzer_sys::fuzz_target;
use plimsoll_record::{request_digest, result_digest};
use plimsoll_wire::{
    detail::{Details, NOT_DISPATCHED, SESSION_ENDED, UNANSWERED_CALL},
    elements,
    proto::{self, Message, RunRequest, RunResponse},
    validate,
};

mod longest;
use longest::{MOST, longest};

fuzz_target!(|data: &[u8]| {
    let counted = elements::check_binary("Run", data, MOST).is_ok();
    if let Ok(request) = proto::decode::<RunRequest>(data) {
        // Of what the decoder merged it may have dropped lists that were longer.
        assert!(!counted || longest(&request) <= MOST);
        let encoded = request.encode_to_vec();
        let recounted = elements::check_binary("Run", &encoded, MOST).is_ok();
        assert_eq!(recounted, longest(&request) <= MOST);
        let _ = validate::single_run(&request);
        let again = proto::decode::<RunRequest>(&encoded).expect("own encoding decodes");
        assert_eq!(again.encode_to_vec(), encoded);
        assert_eq!(request_digest(&again), request_digest(&request));
    }
    if let Ok(response) = proto::decode::<RunResponse>(data) {
        let encoded = response.encode_to_vec();
        let again = proto::decode::<RunResponse>(&encoded).expect("own encoding decodes");
        assert_eq!(again.encode_to_vec(), encoded);
        assert_eq!(result_digest(&again), result_digest(&response));
    }
    let mut details = Details::default();
    for name in [NOT_DISPATCHED, SESSION_ENDED, UNANSWERED_CALL] {
        details.take(name, data);
    }
});
