//! Signing again gives the same bytes; lines on their own; the caller's list.
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;

use common::{check, check_with, lines, public, signing, stranger, vector};
use plimsoll_attestation::{
    Class, Fault,
    bundle::{
        BundleWriter, Call, Entry, Expectation, SeenLine, Visitor, entry::is_torn, expect_count,
        verify, verify_entry,
    },
    statement::SessionClose,
};
use plimsoll_record::Chain;
use plimsoll_wire::proto::{RunRecord, RunRequest, RunResponse};

/// The messages of a bundle, as a harness has them before it signs.
enum Part {
    Call(Box<(RunRequest, Option<RunResponse>, RunRecord)>),
    Close(SessionClose),
    Checkpoint,
}

#[derive(Default)]
struct Parts(Vec<Part>);

impl Visitor for Parts {
    fn call(&mut self, call: &Call<'_>) {
        self.0.push(Part::Call(Box::new((
            call.request.clone(),
            call.response.clone(),
            call.record.clone(),
        ))));
    }

    fn close(&mut self, _: u64, close: &SessionClose) {
        self.0.push(Part::Close(close.clone()));
    }

    fn line(&mut self, line: &SeenLine) {
        if line.checkpoint {
            self.0.push(Part::Checkpoint);
        }
    }
}

#[test]
fn signing_the_stored_messages_again_gives_the_same_bytes() {
    let key = signing();
    let bundle = vector("own-mixed.jsonl");
    let mut parts = Parts::default();
    check_with(&bundle, key.public(), &mut parts).unwrap();
    let mut chains: Vec<Chain> = Vec::new();
    let mut writer = BundleWriter::new(Vec::new(), &key);
    for part in parts.0 {
        let entry = match part {
            Part::Checkpoint => {
                writer.checkpoint().unwrap();
                continue;
            }
            Part::Close(close) => {
                let chain = chains
                    .iter()
                    .find(|chain| chain.fingerprint() == close.session)
                    .cloned()
                    .unwrap_or_else(|| Chain::new(&close.session));
                Entry::close(&chain, close.calls, &close.last_record_sha256).unwrap()
            }
            Part::Call(call) => {
                let (request, response, record) = *call;
                if !record.session.is_empty() {
                    let known = chains
                        .iter()
                        .position(|c| c.fingerprint() == record.session);
                    let at = known.unwrap_or_else(|| {
                        chains.push(Chain::new(&record.session));
                        chains.len() - 1
                    });
                    chains[at].advance(&record).unwrap();
                }
                match response {
                    Some(response) => Entry::answered(&request, &response).unwrap(),
                    None => Entry::unanswered(&request, &record).unwrap(),
                }
            }
        };
        writer.entry(&entry.sign(&key)).unwrap();
    }
    assert_eq!(bundle.len(), 25_997);
    assert_eq!(writer.position().lines(), 11);
    assert!(writer.into_inner() == bundle, "the bytes differ");
}

#[test]
fn each_line_on_its_own() {
    let key = public("own-mixed.pub");
    let keys = std::slice::from_ref(&key);
    let bundle = vector("own-mixed.jsonl");
    let whole = lines(&bundle);
    for number in 1..=11u64 {
        let verdict = verify_entry(bundle.as_slice(), keys, number);
        match number {
            4 | 11 => {
                let fault = verdict.unwrap_err();
                assert_eq!(fault.class(), Class::NotACall);
                assert_eq!(fault.reason().word(), "checkpoint");
            }
            6 | 9 => {
                let fault = verdict.unwrap_err();
                assert_eq!(fault.class(), Class::NotACall, "{number}");
                assert_eq!(fault.reason().word(), "close");
            }
            _ => {
                let entry = verdict.unwrap();
                assert_eq!(entry.key_id, key.id());
                assert_eq!(entry.bytes, whole[number as usize - 1]);
                assert_eq!(entry.call().line, number);
                assert_eq!(entry.previous_line_sha256.is_empty(), number == 1);
            }
        }
    }
    let fault = verify_entry(bundle.as_slice(), keys, 12).unwrap_err();
    assert_eq!((fault.class(), fault.line()), (Class::NoLine, Some(12)));
    assert_eq!(fault.found_value(), Some("11"));
    assert_eq!(
        verify_entry(bundle.as_slice(), keys, 0)
            .unwrap_err()
            .class(),
        Class::NoLine
    );
}

#[test]
fn a_line_on_its_own_in_a_file_that_is_being_written() {
    let key = public("own-mixed.pub");
    let keys = std::slice::from_ref(&key);
    let bundle = vector("own-mixed.jsonl");
    let end: usize = lines(&bundle)[..7].iter().map(|line| line.len() + 1).sum();
    let cut = &bundle[..end];
    verify_entry(cut, keys, 7).unwrap();
    assert_eq!(check(cut, &key).unwrap_err().class(), Class::Incomplete);
    assert_eq!(check(cut, &key).unwrap_err().last_checkpoint(), Some(4));
    let torn = &bundle[..end - 1];
    let fault = verify_entry(torn, keys, 7).unwrap_err();
    assert_eq!((fault.class(), fault.line()), (Class::Line, Some(7)));
    assert!(is_torn(&fault));
    assert_eq!(check(torn, &key).unwrap_err().last_checkpoint(), Some(4));
    // Lines before it are not looked at; a line in another place is.
    let mut first = bundle.clone();
    first[10] ^= 1;
    verify_entry(first.as_slice(), keys, 7).unwrap();
    let without = &bundle[lines(&bundle)[0].len() + 1..];
    let fault = verify_entry(without, keys, 6).unwrap_err();
    assert_eq!(fault.reason().word(), "index");
    let other = [stranger().public().clone()];
    let fault = verify_entry(bundle.as_slice(), &other, 7).unwrap_err();
    assert_eq!(fault.reason().word(), "other_key");
    assert_eq!(fault.expected_value(), Some(other[0].id()));
    assert_eq!(fault.found_value(), Some(key.id()));
}

fn expectation(list: &[&str]) -> Result<(), Fault> {
    let mut expectation = Expectation::new(list)?;
    let key = public("own-mixed.pub");
    check_with(&vector("own-mixed.jsonl"), &key, &mut expectation).unwrap();
    expectation.met()
}

#[test]
fn the_callers_own_list() {
    let file = String::from_utf8(vector("own-mixed.expect")).unwrap();
    let list: Vec<&str> = file.lines().map(|line| &line[..64]).collect();
    assert_eq!(list.len(), 7);
    expectation(&list).unwrap();
    let fault = expectation(&list[1..]).unwrap_err();
    assert_eq!(fault.class(), Class::Expected);
    assert_eq!(fault.unexpected(), ["faa3192e76f404ef t-1"]);
    assert!(fault.missing().is_empty());
    let zero = "0".repeat(64);
    let more = [list.as_slice(), &[list[1], &zero, &zero]].concat();
    let fault = expectation(&more).unwrap_err();
    assert_eq!(
        fault.missing(),
        ["0000000000000000 (2 times)", "25eb41c8ac7b3f6a t-2"]
    );
    let upper = list[0].to_uppercase();
    let fault = expectation(&[list[1], &upper]).unwrap_err();
    assert_eq!(fault.reason().word(), "not_a_digest");
    assert_eq!(
        (fault.line(), fault.found_value()),
        (Some(2), Some(upper.as_str()))
    );
}

#[test]
fn the_number_of_calls() {
    let report = check(&vector("own-mixed.jsonl"), &public("own-mixed.pub")).unwrap();
    expect_count(&report, 7).unwrap();
    let fault = expect_count(&report, 6).unwrap_err();
    assert_eq!(fault.class(), Class::Expected);
}

#[test]
fn one_key_of_several_is_chosen_by_line_1() {
    let bundle = vector("own-mixed.jsonl");
    let own = public("own-mixed.pub");
    let other = stranger().public().clone();
    let keys = [other.clone(), own.clone()];
    let report = verify(bundle.as_slice(), &keys, &mut ()).unwrap();
    assert_eq!(report.key_id, own.id());
    let keys = [other.clone(), public("sessions-linked.pub")];
    let fault = verify(bundle.as_slice(), &keys, &mut ()).unwrap_err();
    assert_eq!(fault.class(), Class::Signature);
    assert_eq!(fault.found_value(), Some(own.id()));
    // Lines of two keys do not make one bundle, whatever keys are given.
    let linked = vector("sessions-linked.jsonl");
    let spliced = [lines(&bundle)[0], lines(&linked)[1], b""].join(&b'\n');
    let keys = [own, public("sessions-linked.pub")];
    let fault = verify(spliced.as_slice(), &keys, &mut ()).unwrap_err();
    assert_eq!((fault.class(), fault.line()), (Class::Signature, Some(2)));
}
