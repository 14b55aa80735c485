//! Steps 8 and 9: the evidence, and the BOM built from it once more.

use plimsoll_attestation::{
    Fault, PublicKey,
    bundle::{Lone, verify_lone},
    fault::{ChainReason, NotACallReason},
};
use plimsoll_record::{Chain, Digest, check::RecordError};

use super::{Checked, Claimed, bound};
use crate::{
    bom::Bom,
    bundle::{Bundle, Selection, reread},
    facts::CallFacts,
    fault::{BomError, Code, Refusal},
    lines::{LineRef, Store, verified},
    print::Compare,
    profile::{Attach, Kind, Options, Scope},
    receipt,
    subject::{Session, Subject, Tested},
    tree::{Node, first_difference},
};

/// Longest text of a value that differs, in bytes before it is cut to
/// characters.
const SHOWN_BYTES: usize = 1024;

/// What a BOM says of itself and what is attached to it, whichever way it was
/// read.
pub(super) struct Claim<'c> {
    pub(super) key: &'c PublicKey,
    pub(super) kind: Kind,
    pub(super) scope: Scope,
    pub(super) lines: &'c [u64],
    pub(super) options: &'c Options,
    pub(super) attached: &'c dyn Evidence,
}

/// What is attached to a BOM.
pub(super) trait Evidence: Store {
    /// Digest and length of an attached line.
    fn of_line(&self, line: u64) -> Result<(Digest, u64), BomError>;

    /// Where a statement's envelope stands.
    fn pointer_of(&self, role: &str) -> Option<String>;

    /// The bytes of a statement's envelope.
    fn statement(&self, role: &str) -> Result<Vec<u8>, BomError>;
}

/// What the BOM must describe, taken from a verified bundle. With `compare` a
/// receipt's statements are held against the evidence.
pub(super) fn of_bundle(
    claim: &Claim<'_>,
    bundle: &Bundle<'_>,
    compare: bool,
) -> Result<Subject, BomError> {
    let first = claim.lines.first().copied().unwrap_or_default();
    match claim.kind {
        Kind::Run => bundle.select(&Selection::Line(first)),
        Kind::Session => match bundle.session_of(first) {
            Some(fingerprint) => bundle.select(&Selection::Session(fingerprint.to_owned())),
            None => {
                let fact = "the first line is no call of a session";
                Err(Refusal::new(Code::NoRuns, fact).line(first).into())
            }
        },
        Kind::Receipt => {
            let call = bundle.call(first, true)?;
            let tested = with_statements(claim, call)?;
            if compare {
                let place = |role: &str| claim.attached.pointer_of(role);
                bound::statements(claim.key, &tested, bundle.store, Some(bundle), &place)?;
            }
            Ok(Subject::Receipt(Box::new(tested)))
        }
    }
}

/// What the BOM must describe, taken from the lines attached to it.
pub(super) fn of_attached(claim: &Claim<'_>) -> Result<Subject, BomError> {
    if claim.options.attach == Attach::Envelope {
        return Err(Refusal::new(
            Code::AttachmentMissing,
            "the BOM has record envelopes attached and no whole lines",
        )
        .at("/components")
        .into());
    }
    let store: &dyn Store = claim.attached;
    let mut calls = Vec::new();
    let mut chain: Option<Chain> = None;
    let mut close = None;
    for &number in claim.lines {
        let (digest, length) = claim.attached.of_line(number)?;
        let at = LineRef {
            number,
            offset: 0,
            length,
            digest,
        };
        let bytes = verified(store, &at)?;
        let alone = verify_lone(&bytes, std::slice::from_ref(claim.key), number)?;
        let wrong = |fault: Fault| BomError::Evidence(fault.at_line(number));
        match alone {
            Lone::Call(entry) => {
                let record = &entry.call().record;
                if claim.kind == Kind::Session {
                    if close.is_some() {
                        return Err(wrong(Fault::new(ChainReason::Closed)));
                    }
                    chain
                        .get_or_insert_with(|| Chain::new(&record.session))
                        .advance(record)
                        .map_err(|error| wrong(broken(&error)))?;
                }
                calls.push(reread(&bytes, &at, claim.kind == Kind::Receipt)?);
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
    match claim.kind {
        Kind::Session => {
            let fingerprint = chain.map(|chain| chain.fingerprint().to_owned());
            let close = close.ok_or_else(|| {
                Refusal::new(Code::SessionOpen, "the session's close is not attached")
            })?;
            fingerprint
                .and_then(|fingerprint| Session::new(&fingerprint, calls, close))
                .map(Subject::Session)
                .ok_or_else(|| lost().into())
        }
        Kind::Run => Ok(Subject::Run(Box::new(calls.pop().ok_or_else(lost)?))),
        Kind::Receipt => {
            let call = calls.pop().ok_or_else(lost)?;
            let tested = with_statements(claim, call)?;
            let place = |role: &str| claim.attached.pointer_of(role);
            bound::statements(claim.key, &tested, store, None, &place)?;
            Ok(Subject::Receipt(Box::new(tested)))
        }
    }
}

fn with_statements(claim: &Claim<'_>, call: CallFacts) -> Result<Tested, BomError> {
    let statement = |role| claim.attached.statement(role);
    let (test_result, receipt) = (statement("test-result")?, statement("pr-receipt")?);
    receipt::tested(call, claim.key, &test_result, &receipt)
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

/// What is told of a BOM with these bytes, rebuilt from `subject`.
pub(super) fn told(
    claim: &Claim<'_>,
    subject: &Subject,
    bom: &Bom<'_>,
    sha256: Digest,
    attached: bool,
) -> Checked {
    let image_name = claim.options.image_name.as_ref();
    Checked {
        serial_number: bom.serial_number().to_owned(),
        sha256,
        kind: subject.kind(),
        scope: claim.scope,
        attached,
        lines: subject.lines().map(|line| line.number).collect(),
        records: subject
            .calls()
            .iter()
            .map(|call| call.record.record_sha256.clone())
            .collect(),
        isolation: subject.isolation().to_owned(),
        image_name: image_name.map(|name| name.as_str().to_owned()),
    }
}

/// Step 9.
pub(super) fn compared(
    claimed: &Claimed<'_>,
    claim: &Claim<'_>,
    subject: &Subject,
    store: &dyn Store,
    attached: bool,
) -> Result<Checked, BomError> {
    let bom = Bom::unvalidated(subject, claim.key, store, claim.scope, claim.options)?;
    let mut compare = Compare::with(claimed.text);
    let written = bom.write(&mut compare);
    if compare.differs || (written.is_ok() && !compare.is_equal()) {
        return Err(mismatch(claimed, &bom, compare.at)?.into());
    }
    let written = written?;
    Ok(told(claim, subject, &bom, written.sha256, attached))
}

/// The first member that differs. The serial number is of the content, so it is
/// named only when it alone differs.
fn mismatch(claimed: &Claimed<'_>, bom: &Bom<'_>, at: u64) -> Result<Refusal, BomError> {
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
