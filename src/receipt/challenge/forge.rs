//! Receipts signed again with another key, consistent but for what is wrong.

use plimsoll_attestation::{
    PublicKey, SigningKey,
    bundle::{BundleWriter, Entry},
};
use plimsoll_bom::{Bom, BomError, Bundle, Memory, Options};
use plimsoll_record::{Digest, record_digest, request_digest, result_digest};
use plimsoll_wire::proto::{
    ProjectResult, ProjectRun, RunRecord, RunRequest, RunResponse, run_request::Payload,
    run_response::Result as RunResult,
};

use super::Original;
use crate::{
    collect::manifest,
    folder::Folder,
    git::{Oid, blob},
    make,
    run::Run,
    statement::{Digest as Named, Receipt, Statement, TestResult, receipt, test_result},
};

/// The parts of a receipt, to be changed before they are signed again.
pub struct Forge {
    pub request: RunRequest,
    pub response: RunResponse,
    pub receipt: Receipt,
    pub test_result: TestResult,
    /// The subjects' names and digests follow the receipt unless this is set.
    pub keep_subjects: bool,
    /// Changed after everything was made consistent again.
    pub last: fn(&mut Receipt),
}

impl Forge {
    /// The project that is asked for.
    pub fn asked(&mut self) -> Option<&mut ProjectRun> {
        match &mut self.request.payload {
            Some(Payload::Project(run)) => Some(run),
            _ => None,
        }
    }

    /// Its result.
    pub fn result(&mut self) -> Option<&mut ProjectResult> {
        match &mut self.response.result {
            Some(RunResult::Project(result)) => Some(result),
            _ => None,
        }
    }

    /// Counts the files sent and takes their manifest again.
    pub fn recount(&mut self) -> Option<()> {
        let algorithm = Oid::parse(&self.receipt.tested.tree_sha)?.algorithm();
        let added: Vec<String> = self
            .receipt
            .tested
            .added
            .iter()
            .map(|f| f.path.clone())
            .collect();
        let files = self.asked()?.files.clone();
        let mut sent = Vec::new();
        for file in files.iter().filter(|file| !added.contains(&file.path)) {
            let name = blob::name(algorithm, file.content.as_bytes())?;
            sent.push((
                file.path.as_str(),
                name,
                Digest::of(file.content.as_bytes()),
            ));
        }
        sent.sort_by(|a, b| a.0.cmp(b.0));
        self.receipt.tested.files = sent.len() as u64;
        let listed = sent
            .iter()
            .map(|(path, name, sha)| (*path, name.as_str(), *sha));
        self.receipt.tested.manifest_sha256 = manifest(listed).to_hex();
        Some(())
    }
}

/// Signs a receipt again after `change`, which says `None` when it cannot be
/// made.
pub fn again(original: &Original, change: impl FnOnce(&mut Forge) -> Option<()>) -> Option<Folder> {
    let mut forge = Forge {
        request: original.run.request.clone(),
        response: original.run.response.clone(),
        receipt: original.receipt.predicate.clone(),
        test_result: original.test_result.predicate.clone(),
        keep_subjects: false,
        last: |_| {},
    };
    change(&mut forge)?;
    let bundle = bundle(&mut forge, &original.key, 1)?;
    signed(original, forge, bundle)
}

/// A bundle of the exchange, `calls` times, and a checkpoint.
pub fn bundle(forge: &mut Forge, key: &SigningKey, calls: usize) -> Option<Vec<u8>> {
    let mut record: RunRecord = forge.response.record.clone().into_option()?;
    record.request_sha256 = request_digest(&forge.request).to_hex();
    record.result_sha256 = result_digest(&forge.response).to_hex();
    record.isolation.clone_from(&forge.response.isolation);
    record.record_sha256 = record_digest(&record)?.to_hex();
    forge.response.record = record.into();
    let entry = Entry::answered(&forge.request, &forge.response)
        .ok()?
        .sign(key);
    let mut writer = BundleWriter::new(Vec::new(), key);
    for _ in 0..calls {
        writer.entry(&entry).ok()?;
    }
    writer.checkpoint().ok()?;
    Some(writer.into_inner())
}

fn signed(original: &Original, forge: Forge, bundle: Vec<u8>) -> Option<Folder> {
    let key = &original.key;
    let run = Run::read(&bundle, key.public()).ok()?;
    let Forge {
        mut receipt,
        test_result,
        keep_subjects,
        last,
        ..
    } = forge;
    receipt.run.line = run.line;
    receipt.run.entry_sha256.clone_from(&run.entry_sha256);
    receipt
        .run
        .record_sha256
        .clone_from(&run.record.record_sha256);
    receipt.bundle_sha256.clone_from(&run.bundle_sha256);
    key.public().id().clone_into(&mut receipt.signing_key.id);
    let named = if keep_subjects {
        &original.receipt.predicate
    } else {
        &receipt
    };
    let mut subjects = make::subjects(
        &named.repository.url,
        named.pull_request.number,
        named.tested.kind,
        &named.tested.commit_sha,
        &named.tested.tree_sha,
        &run.record.record_sha256,
    );
    let test_result = Statement::new(test_result::TYPE, subjects.clone(), test_result);
    receipt.test_result_sha256 = Digest::of(&test_result.payload()).to_hex();
    last(&mut receipt);
    subjects.push(crate::statement::Subject {
        name: "bundle.jsonl".to_owned(),
        digest: Named::Sha256(run.bundle_sha256.clone()),
    });
    let receipt = Statement::new(receipt::TYPE, subjects, receipt);
    let line = |json: String| (json + "\n").into_bytes();
    let test_result = line(test_result::sign(&test_result, key).ok()?.to_json());
    let receipt = line(receipt::sign(&receipt, key).ok()?.to_json());
    Some(Folder {
        bom: bom(&bundle, key.public(), &test_result, &receipt).ok()?,
        bundle,
        test_result,
        receipt,
        public_key: key.public().to_pem().into_bytes(),
    })
}

/// The BOM of a receipt that may be wrong.
fn bom(
    bundle: &[u8],
    key: &PublicKey,
    test_result: &[u8],
    receipt: &[u8],
) -> Result<Vec<u8>, BomError> {
    let store = Memory(bundle);
    let verified = Bundle::verify(&store, bundle, key, &mut |_| {})?;
    let subject = verified.receipt_as_signed(key, test_result, receipt)?;
    Bom::new(&verified, &subject, key, &Options::default())?.to_vec()
}
