//! What may be signed, sessions as they are written, and lines as they are
//! read back.
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;

use std::io::{self, Write};

use common::{answered, check, signing, single_run};
use plimsoll_attestation::{
    Class, Line,
    bundle::{BundleWriter, Entry, Options, append, check as check_file, disk::OsDisk},
    statement::run_record,
};
use plimsoll_record::{
    Chain,
    make::{self, Facts, Stated},
    record_digest, request_digest,
};
use plimsoll_wire::{
    Code, Rule,
    proto::{CellRun, MessageField, RunRecord, RunRequest, RunResponse, run_request},
};

fn request(code: &str) -> RunRequest {
    RunRequest {
        protocol: 3,
        payload: Some(run_request::Payload::from(CellRun {
            language: "python".to_owned(),
            code: code.to_owned(),
            ..Default::default()
        })),
        ..Default::default()
    }
}

fn unanswered(request: &RunRequest, chain: Option<&Chain>) -> RunRecord {
    let facts = Facts {
        request: request_digest(request),
        rule: &Rule::default(),
        policy: "",
        started_unix_ms: 5,
        ended_unix_ms: 6,
        chain,
    };
    let stated = Stated {
        provider: "test".to_owned(),
        isolation: "vm".to_owned(),
        ..Stated::default()
    };
    make::unanswered(&facts, &stated, Code::DeadlineExceeded)
}

fn word(entry: Result<Entry, plimsoll_attestation::Fault>) -> &'static str {
    entry.map_or_else(
        |fault| {
            assert_eq!(fault.class(), Class::Bundle);
            fault.reason().word()
        },
        |_| "ok",
    )
}

/// An answer whose record was changed and given its right digest again.
fn changed(request: &RunRequest, change: impl FnOnce(&mut RunRecord)) -> RunResponse {
    let mut response = answered(request, None, "");
    let mut record = response.record.as_option().unwrap().clone();
    change(&mut record);
    record.record_sha256 = record_digest(&record).map_or_else(String::new, |d| d.to_hex());
    response.record = MessageField::some(record);
    response
}

#[test]
fn only_checked_records_are_signed() {
    let request = request("1");
    let try_answer =
        |change: fn(&mut RunRecord)| word(Entry::answered(&request, &changed(&request, change)));
    assert_eq!(try_answer(|_| {}), "ok");
    assert_eq!(
        try_answer(|record| record.result_sha256 = "0".repeat(64)),
        "record"
    );
    assert_eq!(
        try_answer(|record| record.provider = "other".into()),
        "record"
    );
    assert_eq!(try_answer(|record| record.version = 3), "version");
    assert_eq!(try_answer(|record| record.version = 4), "version");
    assert_eq!(
        try_answer(|record| record.unanswered = "internal".into()),
        "record"
    );
    assert_eq!(try_answer(|record| record.sequence = 1), "chain");
    assert_eq!(
        try_answer(|record| record.previous_sha256 = "0".repeat(64)),
        "chain"
    );
    assert_eq!(try_answer(|record| record.session = "x".into()), "chain");
    assert_eq!(
        try_answer(|record| record.session = "0".repeat(64)),
        "chain"
    );
    assert_eq!(
        try_answer(|record| (record.session, record.sequence) = ("0".repeat(64), 2)),
        "chain"
    );
    let mut old = RunRequest {
        protocol: 1,
        ..request.clone()
    };
    assert_eq!(
        word(Entry::answered(
            &old,
            &changed(&old, |record| record.version = 1)
        )),
        "version"
    );
    // A tier below the floor, all digests right.
    old.protocol = 3;
    old.minimum_isolation = "vm".to_owned();
    assert_eq!(
        word(Entry::answered(&old, &answered(&old, None, ""))),
        "record"
    );
    let mut none = answered(&request, None, "");
    none.record = MessageField::none();
    assert_eq!(word(Entry::answered(&request, &none)), "record");

    let chain = Chain::new("a".repeat(64));
    let record = unanswered(&request, Some(&chain));
    assert_eq!(word(Entry::unanswered(&request, &record)), "ok");
    assert_eq!(
        word(Entry::unanswered(&request, &unanswered(&request, None))),
        "chain"
    );
    let other = RunRequest {
        timeout_ms: 1,
        ..request.clone()
    };
    assert_eq!(word(Entry::unanswered(&other, &record)), "record");

    assert_eq!(word(Entry::close(&chain, 0, "")), "ok");
    assert_eq!(word(Entry::close(&chain, 1, "")), "close");
    assert_eq!(word(Entry::close(&chain, 0, &"0".repeat(64))), "close");
    assert_eq!(
        word(Entry::close(&Chain::new("A".repeat(64)), 0, "")),
        "close"
    );
}

#[test]
fn a_session_is_written_call_by_call() {
    let key = signing();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.jsonl");
    let mut chain = Chain::of_session_id("00112233445566778899aabbccddeeff");
    let session = chain.fingerprint().to_owned();
    let mine = Options {
        open_session: Some(&session),
        ..Options::default()
    };
    let put = |entry: Entry, options: Options<'_>| {
        append(&OsDisk, &path, &key, &[entry.sign(&key)], options, &mut ())
    };
    put(single_run(0), Options::default()).unwrap();
    for n in 0..3 {
        let request = request(&n.to_string());
        let entry = if n == 1 {
            let record = unanswered(&request, Some(&chain));
            chain.advance(&record).unwrap();
            Entry::unanswered(&request, &record).unwrap()
        } else {
            let response = answered(&request, Some(&chain), "x");
            chain.advance(response.record.as_option().unwrap()).unwrap();
            Entry::answered(&request, &response).unwrap()
        };
        put(entry, mine).unwrap();
    }
    // To everyone else the bundle has an open session.
    let error = put(single_run(1), Options::default()).unwrap_err();
    assert_eq!(error.fault.reason(), "chain");
    let other = "0".repeat(64);
    let other = Options {
        open_session: Some(&other),
        ..Options::default()
    };
    assert!(check_file(&OsDisk, &path, &key, other, &mut ()).is_err());
    let close = Entry::close(&chain, chain.calls(), chain.last()).unwrap();
    put(close, mine).unwrap();
    put(single_run(2), Options::default()).unwrap();
    let report = check(&std::fs::read(&path).unwrap(), key.public()).unwrap();
    assert_eq!(
        (report.records, report.single_runs, report.unanswered),
        (5, 2, 1)
    );
    let [written] = report.sessions.as_slice() else {
        panic!("one session")
    };
    assert_eq!(
        (written.session.as_str(), written.calls, written.unanswered),
        (session.as_str(), 3, 1)
    );
    assert_eq!(
        report
            .tiers
            .iter()
            .map(|(t, n)| (t.as_str(), *n))
            .collect::<Vec<_>>(),
        [("kernel", 4), ("vm", 1)]
    );
    assert_eq!(
        (report.first_unix_ms, report.last_unix_ms),
        (Some(5), Some(1_793_000_000_100))
    );
}

#[test]
fn an_empty_bundle_is_a_checkpoint_on_line_1() {
    let key = signing();
    let mut writer = BundleWriter::new(Vec::new(), &key);
    assert_eq!(writer.checkpoint().unwrap(), 1);
    let report = check(&writer.into_inner(), key.public()).unwrap();
    assert_eq!((report.lines, report.records), (1, 0));
}

#[test]
fn nothing_is_written_after_a_failed_write() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            Ok(taken)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let key = signing();
    let mut writer = BundleWriter::new(Full(100), &key);
    let entry = single_run(1).sign(&key);
    assert_eq!(writer.entry(&entry).unwrap_err().reason().word(), "write");
    assert_eq!(writer.position().lines(), 0);
    assert_eq!(writer.checkpoint().unwrap_err().reason().word(), "poisoned");
}

#[test]
fn a_line_over_the_cap_is_not_written() {
    let key = signing();
    let request = request("1");
    // Base64 takes four bytes for three: 48 MiB of output passes 64 MiB.
    let response = answered(&request, None, &"x".repeat(48 << 20));
    let entry = Entry::answered(&request, &response).unwrap().sign(&key);
    let mut writer = BundleWriter::new(Vec::new(), &key);
    assert_eq!(
        writer.entry(&entry).unwrap_err().reason().word(),
        "too_long"
    );
    assert_eq!(writer.position().lines(), 0);
    writer.entry(&single_run(1).sign(&key)).unwrap();
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]

    #[test]
    fn lines_and_records_read_back(
        text in proptest::string::string_regex("(?s).{0,60}").unwrap(),
        stdout in proptest::string::string_regex("(?s).{0,200}").unwrap(),
        started in 0i64.., nanos in 0i64..1000,
    ) {
        let key = signing();
        let request = request(&text);
        let mut response = answered(&request, None, &stdout);
        response.sandbox.clone_from(&text);
        let facts = Facts {
            request: request_digest(&request), rule: &Rule::default(), policy: &text,
            started_unix_ms: started, ended_unix_ms: started.saturating_add(nanos), chain: None,
        };
        response.record = MessageField::none();
        let record = make::answered(&facts, &response);
        response.record = MessageField::some(record.clone());
        let mut writer = BundleWriter::new(Vec::new(), &key);
        writer.entry(&Entry::answered(&request, &response).unwrap().sign(&key)).unwrap();
        writer.checkpoint().unwrap();
        let bundle = writer.into_inner();
        proptest::prop_assert_eq!(check(&bundle, key.public()).unwrap().records, 1);
        let line = Line::decode(common::lines(&bundle)[0]).unwrap();
        let read = run_record::open(line.envelope.as_ref().unwrap(), key.public()).unwrap();
        proptest::prop_assert_eq!(&read, &record);
        let predicate: serde_json::Value = serde_json::from_str(&run_record::predicate(&record)).unwrap();
        proptest::prop_assert_eq!(predicate["policy"].as_str().unwrap(), text);
    }
}
