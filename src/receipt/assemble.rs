//! A receipt put together from its bundle and what was tested, and read back.

use plimsoll_attestation::{Fault, PublicKey, SigningKey};
use plimsoll_bom::{Bom, BomError, Bundle, Memory, Options};

use crate::{
    Facts,
    folder::Folder,
    make::{About, statements},
    outcome::Outcome,
    page,
    run::{Run, RunError},
    show,
    statement::{self, OpenError, receipt, test_result},
    summary, verify,
};

/// Why a receipt was not put together.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// A statement cannot be signed.
    #[error("a statement cannot be signed: {}", .0.reason().text())]
    Sign(Box<Fault>),
    /// The BOM.
    #[error("the BOM cannot be built: {0}")]
    Bom(#[from] BomError),
    /// The bundle.
    #[error("{0}")]
    Run(#[from] RunError),
    /// A statement of a receipt that is read back.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// The public key of a receipt that is read back.
    #[error("receipt.pub: {0}")]
    Key(plimsoll_attestation::KeyFault),
    /// A receipt that lists reports no reader knows.
    #[error("{0}")]
    Reports(String),
}

/// Signs the statements, builds the BOM and gives the evidence of a receipt.
/// `bundle` is the bytes that `run` was read from.
///
/// # Errors
/// [`AssembleError`].
pub fn assemble(
    bundle: &[u8],
    run: &Run,
    outcome: &Outcome,
    about: About,
    key: &SigningKey,
) -> Result<Folder, AssembleError> {
    let sign = |fault: Fault| AssembleError::Sign(Box::new(fault));
    let (test_result, receipt) = statements(about, run, outcome);
    let line =
        |envelope: plimsoll_attestation::Envelope<'_>| (envelope.to_json() + "\n").into_bytes();
    let test_result = line(test_result::sign(&test_result, key).map_err(sign)?);
    let receipt = line(statement::receipt::sign(&receipt, key).map_err(sign)?);
    let public = key.public();
    Ok(Folder {
        bom: bom(bundle, public, &test_result, &receipt)?,
        bundle: bundle.to_vec(),
        test_result,
        receipt,
        public_key: public.to_pem().into_bytes(),
    })
}

/// The BOM of a receipt's evidence, refused when the statements state something
/// else than the bundle holds.
fn bom(
    bundle: &[u8],
    key: &PublicKey,
    test_result: &[u8],
    receipt: &[u8],
) -> Result<Vec<u8>, BomError> {
    let store = Memory(bundle);
    let verified = Bundle::verify(&store, bundle, key, &mut |_| {})?;
    let subject = verified.receipt(key, test_result, receipt)?;
    Bom::new(&verified, &subject, key, &Options::default())?.to_vec()
}

/// What is rendered from a receipt; not evidence.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The facts shown.
    pub facts: Facts,
    /// `summary.md`.
    pub summary: String,
    /// `report.html`.
    pub page: String,
}

/// Reads a receipt back under its own key and renders it. Whether the key, the
/// commit and the BOM are right is [`verify`]'s question.
///
/// # Errors
/// [`AssembleError`].
pub fn render(folder: &Folder) -> Result<Rendered, AssembleError> {
    let key = PublicKey::from_pem(&folder.public_key).map_err(AssembleError::Key)?;
    let run = Run::read(&folder.bundle, &key)?;
    test_result::open_envelope(&folder.test_result, &key)?;
    let (statement, payload) = receipt::open_envelope(&folder.receipt, &key)?;
    let specs = verify::specs(&statement.predicate).map_err(AssembleError::Reports)?;
    let (asked, result) = run.project().ok_or(RunError::None)?;
    let outcome = crate::outcome::evaluate(asked, result, &specs);
    let facts = show::facts(&statement.predicate, &payload, &run, &outcome, &folder.bom);
    Ok(Rendered {
        summary: summary::markdown(&facts),
        page: page::html(&facts, &show::evidence(folder)),
        facts,
    })
}
