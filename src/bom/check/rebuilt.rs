//! Steps 8 and 9: the evidence, and the BOM built from it once more.

use plimsoll_attestation::{
    Fault, Line,
    bundle::{Lone, verify_lone},
    fault::{ChainReason, NotACallReason},
};
use plimsoll_record::{Chain, Digest, check::RecordError};

use super::{Checked, Claimed, attached::AttachedLines, bound};
use crate::{
    bom::Bom,
    bundle::{Bundle, Selection, reread},
    facts::CallFacts,
    fault::{BomError, Code, Refusal},
    lines::{LineRef, Store, verified},
    print::Compare,
    profile::{Attach, Kind},
    receipt,
    subject::{Session, Subject, Tested},
    tree::{Node, first_difference},
};

/// Longest text of a value that differs, in bytes before it is cut to
/// characters.
const SHOWN_BYTES: usize = 1024;

pub(super) fn from_bundle(
    claimed: &Claimed<'_>,
    bundle: &Bundle<'_>,
    compare: bool,
) -> Result<Checked, BomError> {
    for &number in &claimed.lines {
        let attached = claimed.attachments.of_line(number)?;
        let refuse = |fact: &str| {
            Refusal::new(Code::AttachmentEvidenceMismatch, fact)
                .at(attached.pointer())
                .line(number)
        };
        let Some(line) = bundle.line(number) else {
            return Err(refuse("the bundle has no line of this number").into());
        };
        let expected = match claimed.options.attach {
            Attach::Line => line.digest,
            Attach::Envelope => {
                let bytes = verified(bundle.store, &line)?;
                let line = Line::decode(&bytes)?;
                let envelope = line.envelope.map(|envelope| envelope.to_json());
                Digest::of(envelope.unwrap_or_default().as_bytes())
            }
        };
        if attached.sha256 != expected {
            return Err(refuse("the attachment is not the bundle's line")
                .expected(expected)
                .found(attached.sha256)
                .into());
        }
    }
    let first = claimed.lines.first().copied().unwrap_or_default();
    let subject = match claimed.kind {
        Kind::Run => bundle.select(&Selection::Line(first))?,
        Kind::Session => match bundle.session_of(first) {
            Some(fingerprint) => bundle.select(&Selection::Session(fingerprint.to_owned()))?,
            None => {
                let fact = "the first line is no call of a session";
                return Err(Refusal::new(Code::NoRuns, fact).line(first).into());
            }
        },
        Kind::Receipt => {
            let call = bundle.call(first, true)?;
            let tested = with_statements(claimed, call)?;
            if compare {
                bound::statements(claimed, &tested, bundle.store, Some(bundle))?;
            }
            Subject::Receipt(Box::new(tested))
        }
    };
    compared(claimed, &subject, bundle.store, false)
}

pub(super) fn from_attached(claimed: &Claimed<'_>) -> Result<Checked, BomError> {
    if claimed.options.attach == Attach::Envelope {
        return Err(Refusal::new(
            Code::AttachmentMissing,
            "the BOM has record envelopes attached and no whole lines",
        )
        .at("/components")
        .into());
    }
    let store = AttachedLines {
        root: &claimed.root,
        attachments: &claimed.attachments,
    };
    let mut calls = Vec::new();
    let mut chain: Option<Chain> = None;
    let mut close = None;
    for &number in &claimed.lines {
        let attached = claimed.attachments.of_line(number)?;
        let at = LineRef {
            number,
            offset: 0,
            length: attached.length,
            digest: attached.sha256,
        };
        let bytes = verified(&store, &at)?;
        let alone = verify_lone(&bytes, std::slice::from_ref(claimed.key), number)?;
        let wrong = |fault: Fault| BomError::Evidence(fault.at_line(number));
        match alone {
            Lone::Call(entry) => {
                let record = &entry.call().record;
                if claimed.kind == Kind::Session {
                    if close.is_some() {
                        return Err(wrong(Fault::new(ChainReason::Closed)));
                    }
                    chain
                        .get_or_insert_with(|| Chain::new(&record.session))
                        .advance(record)
                        .map_err(|error| wrong(broken(&error)))?;
                }
                calls.push(reread(&bytes, &at, claimed.kind == Kind::Receipt)?);
            }
            Lone::Close(stated) => {
                let Some(chain) = chain.as_ref().filter(|_| close.is_none()) else {
                    return Err(wrong(Fault::new(NotACallReason::Close)));
                };
                chain
                    .closes(&stated.session, stated.calls, &stated.last_record_sha256)
                    .map_err(|error| wrong(broken(&error)))?;
                close = Some(at);
            }
        }
    }
    let lost = || Refusal::new(Code::NoRuns, "no call is attached");
    let subject = match claimed.kind {
        Kind::Session => {
            let fingerprint = chain.map(|chain| chain.fingerprint().to_owned());
            let close = close.ok_or_else(|| {
                Refusal::new(Code::SessionOpen, "the session's close is not attached")
            })?;
            fingerprint
                .and_then(|fingerprint| Session::new(&fingerprint, calls, close))
                .map(Subject::Session)
                .ok_or_else(lost)?
        }
        Kind::Run => Subject::Run(Box::new(calls.pop().ok_or_else(lost)?)),
        Kind::Receipt => {
            let call = calls.pop().ok_or_else(lost)?;
            let tested = with_statements(claimed, call)?;
            bound::statements(claimed, &tested, &store, None)?;
            Subject::Receipt(Box::new(tested))
        }
    };
    compared(claimed, &subject, &store, true)
}

fn with_statements(claimed: &Claimed<'_>, call: CallFacts) -> Result<Tested, BomError> {
    let statement = |role| claimed.attachments.statement(&claimed.root, role);
    let (test_result, receipt) = (statement("test-result")?, statement("pr-receipt")?);
    receipt::tested(call, claimed.key, &test_result, &receipt)
}

/// A break of a session's chain as the evidence's own refusal.
fn broken(error: &RecordError) -> Fault {
    let RecordError::Chain {
        field,
        expected,
        found,
    } = error
    else {
        return Fault::new(ChainReason::Session);
    };
    let reason = match *field {
        "sequence" => ChainReason::Sequence,
        "previous_sha256" => ChainReason::Previous,
        "calls" => ChainReason::Calls,
        "last_record_sha256" => ChainReason::Last,
        _ => ChainReason::Session,
    };
    Fault::new(reason)
        .in_member(format!("envelope.payload.predicate.{field}"))
        .expected(expected)
        .found(found)
}

/// Step 9.
fn compared(
    claimed: &Claimed<'_>,
    subject: &Subject,
    store: &dyn Store,
    attached: bool,
) -> Result<Checked, BomError> {
    let bom = Bom::unvalidated(subject, claimed.key, store, claimed.scope, &claimed.options)?;
    let mut compare = Compare::with(claimed.text);
    let written = bom.write(&mut compare);
    if compare.differs || (written.is_ok() && !compare.is_equal()) {
        return Err(mismatch(claimed, &bom, compare.at)?.into());
    }
    written?;
    Ok(Checked {
        serial_number: bom.serial_number().to_owned(),
        sha256: claimed.sha256(),
        kind: subject.kind(),
        scope: claimed.scope,
        attached,
        lines: subject.lines().map(|line| line.number).collect(),
        records: subject
            .calls()
            .iter()
            .map(|call| call.record.record_sha256.clone())
            .collect(),
        isolation: subject.isolation().to_owned(),
        image_name: claimed
            .options
            .image_name
            .as_ref()
            .map(|name| name.as_str().to_owned()),
    })
}

/// The first member that differs. The serial number is of the content, so it is
/// named only when it alone differs.
fn mismatch(claimed: &Claimed<'_>, bom: &Bom<'_>, at: usize) -> Result<Refusal, BomError> {
    let bytes = bom.to_vec()?;
    let rebuilt = Node::parse(&bytes)?;
    let refusal = Refusal::new(
        Code::BomMismatch,
        "the BOM rebuilt from the evidence differs",
    );
    let difference = first_difference(&rebuilt, &claimed.root, Some("serialNumber"))
        .or_else(|| first_difference(&rebuilt, &claimed.root, None));
    let Some(difference) = difference else {
        return Ok(refusal.byte(at));
    };
    let shown = |node: Option<&Node<'_>>| match node {
        Some(node) => node.shown(SHOWN_BYTES),
        None => "nothing".to_owned(),
    };
    Ok(refusal
        .expected(shown(difference.expected))
        .found(shown(difference.found))
        .at(difference.pointer))
}
