//! Signs a scene into a receipt.

use plimsoll_attestation::{
    Envelope, SigningKey,
    bundle::{BundleWriter, Entry},
};
use plimsoll_bom::{Bom, Bundle, Memory, Options};
use plimsoll_receipt::{
    collect::{LeftOut, manifest, wire_files},
    folder::Folder,
    git::{blob, object::Algorithm},
    make::{self, About, Files},
    outcome::evaluate,
    report::Spec,
    run::Run,
    statement::{
        receipt::{self, Added, PullRequest, Repository, Workflow},
        test_result,
    },
};
use plimsoll_record::{Digest, make as record, request_digest};
use plimsoll_wire::{
    Rule,
    proto::{
        MessageField, ProjectRun, RunRequest, RunResponse, run_request::Payload,
        run_response::Result as RunResult,
    },
};

use crate::scenes::Scene;

/// The example's key; its seed is public.
fn key() -> SigningKey {
    let seed = "5256fb7857e3a68a30c3ba9cd80574e1fc3c4d263fd3f55429ce67af35447fcc";
    let der = hex::decode(format!("302e020100300506032b657004220420{seed}")).unwrap();
    let body = plimsoll_attestation::base64::encode(&der);
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
    SigningKey::from_pem(pem.as_bytes()).unwrap()
}

/// The receipt of a scene.
pub fn receipt(scene: &Scene) -> Folder {
    let key = key();
    let bundle = bundle(scene, &key);
    let run = Run::read(&bundle, key.public()).unwrap();
    let specs: Vec<Spec> = scene
        .reports
        .iter()
        .map(|text| Spec::parse(text).unwrap().unwrap())
        .collect();
    let (asked, result) = run.project().unwrap();
    let outcome = evaluate(asked, result, &specs);
    let about = about(scene, &key);
    let (tests, receipt) = make::statements(about, &run, &outcome);
    let line = |envelope: Envelope<'_>| (envelope.to_json() + "\n").into_bytes();
    let test_result = line(test_result::sign(&tests, &key).unwrap());
    let receipt = line(receipt::sign(&receipt, &key).unwrap());
    let store = Memory(&bundle);
    let verified = Bundle::verify(&store, &*bundle, key.public(), &mut |_| {}).unwrap();
    let subject = verified
        .receipt_as_signed(key.public(), &test_result, &receipt)
        .unwrap();
    let options = Options::default();
    let bom = Bom::new(&verified, &subject, key.public(), &options).unwrap();
    Folder {
        bom: bom.to_vec().unwrap(),
        bundle: bundle.clone(),
        test_result,
        receipt,
        public_key: key.public().to_pem().into_bytes(),
    }
}

fn bundle(scene: &Scene, key: &SigningKey) -> Vec<u8> {
    let mut files = scene.files.clone();
    files.extend(scene.added.iter().cloned());
    files.sort();
    let request = RunRequest {
        protocol: 3,
        minimum_isolation: scene.floor.to_owned(),
        timeout_ms: scene.timeout_ms,
        payload: Some(Payload::Project(Box::new(ProjectRun {
            files: wire_files(files),
            steps: scene
                .steps
                .iter()
                .map(|step| step.command.clone())
                .collect(),
            artifacts: scene
                .result
                .artifacts
                .iter()
                .map(|a| a.path.clone())
                .collect(),
            ..Default::default()
        }))),
        ..Default::default()
    };
    let mut response = RunResponse {
        sandbox: "docker".to_owned(),
        isolation: scene.tier.to_owned(),
        duration_ms: 1200,
        environment: scene.environment.to_owned(),
        result: Some(RunResult::Project(Box::new(scene.result.clone()))),
        ..Default::default()
    };
    let facts = record::Facts {
        request: request_digest(&request),
        rule: &Rule::default(),
        policy: "",
        started_unix_ms: 1_792_314_010_000,
        ended_unix_ms: 1_792_314_012_345,
        chain: None,
    };
    response.record = MessageField::some(record::answered(&facts, &response));
    let entry = Entry::answered(&request, &response).unwrap();
    let mut writer = BundleWriter::new(Vec::new(), key);
    writer.entry(&entry.sign(key)).unwrap();
    writer.checkpoint().unwrap();
    writer.into_inner()
}

fn about(scene: &Scene, key: &SigningKey) -> About {
    let algorithm = if scene.commit.len() == 64 {
        Algorithm::Sha256
    } else {
        Algorithm::Sha1
    };
    let mut named: Vec<(String, String, Digest)> = scene
        .files
        .iter()
        .map(|(path, content)| {
            let blob = blob::name(algorithm, content.as_bytes()).unwrap();
            (
                path.clone(),
                blob.as_str().to_owned(),
                Digest::of(content.as_bytes()),
            )
        })
        .collect();
    named.sort_by(|a, b| a.0.cmp(&b.0));
    let digest = manifest(
        named
            .iter()
            .map(|(path, blob, sha)| (path.as_str(), blob.as_str(), *sha)),
    );
    let id = |digit: &str| digit.repeat(scene.commit.len());
    let oid = |text: &str| plimsoll_receipt::git::Oid::parse(text).unwrap();
    let mut added: Vec<Added> = scene
        .added
        .iter()
        .map(|(path, content)| Added {
            path: path.clone(),
            sha256: Digest::of(content.as_bytes()).to_hex(),
        })
        .collect();
    added.sort_by(|a, b| a.path.cmp(&b.path));
    About {
        binding: plimsoll_receipt::event::Binding {
            repository: Repository {
                url: scene.repository.clone(),
            },
            pull_request: PullRequest {
                number: 42,
                head_repository: scene.head_repository.clone(),
                head_sha: scene.commit.clone(),
                base_ref: scene.base_ref.clone(),
                base_sha: id("b"),
            },
        },
        kind: scene.kind,
        commit: oid(&scene.commit),
        tree: oid(&id("c")),
        files: Files {
            sent: scene.files.len() as u64,
            manifest_sha256: digest.to_hex(),
            executable: scene.executable,
            left_out: scene
                .left_out
                .iter()
                .map(|(path, reason)| LeftOut {
                    path: path.clone(),
                    oid: oid(&id("d")),
                    reason: *reason,
                })
                .collect(),
        },
        added,
        config: make::config_from(scene.config, Some(&oid(&id("e")))),
        tests_changed: scene.tests_changed.clone(),
        workflow: Workflow {
            event: scene.event.clone(),
            path: scene.workflow.clone(),
            git_blob: scene.workflow_blob.clone(),
            run_id: 1_234_567_890,
            run_attempt: 2,
            run_url: scene.run_url.clone(),
        },
        key: make::key(key.public().id(), scene.key_kind),
        created_unix_ms: 1_792_314_013_000,
    }
}
