//! Bundles of made-up calls, signed like a harness signs them.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::needless_update, // a message that grows a field still builds
    clippy::panic,
    clippy::unwrap_used
)]

use plimsoll_attestation::{
    SigningKey,
    bundle::{BundleWriter, Entry},
};
use plimsoll_record::{
    Chain,
    make::{self, Facts, Stated},
    request_digest,
};
use plimsoll_wire::{
    Code, Rule,
    proto::{
        Artifact, CellResult, CellRun, JavaScriptResult, JavaScriptRun, MessageField, ModuleResult,
        ModuleRow, ModuleRowResult, ModuleRun, ProjectFile, ProjectOutcome, ProjectResult,
        ProjectRun, RunRecord, RunRequest, RunResponse, StepResult, run_request, run_response,
    },
};

/// One call to make up.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// 0 a snippet, 1 a project, 2 a cell, 3 a module (a snippet in a session).
    pub kind: u8,
    /// Code, paths, output and names.
    pub text: String,
    pub files: usize,
    pub steps: usize,
    pub exit_code: i32,
    pub provider: String,
    pub isolation: String,
    pub environment: String,
    pub software: String,
    pub policy: String,
    /// Whether no answer came; in a session only.
    pub unanswered: bool,
    pub started_unix_ms: i64,
}

impl Shape {
    fn request(&self, in_session: bool) -> RunRequest {
        let files = |count: usize| -> Vec<ProjectFile> {
            (0..count)
                .map(|i| ProjectFile {
                    path: format!("{}{i}", self.text),
                    content: self.text.clone(),
                    ..Default::default()
                })
                .collect()
        };
        let payload = match self.kind {
            1 => run_request::Payload::from(ProjectRun {
                files: files(self.files),
                steps: vec![self.text.clone(); self.steps],
                ..Default::default()
            }),
            2 => run_request::Payload::from(CellRun {
                language: "python".to_owned(),
                code: self.text.clone(),
                files: files(self.files),
                ..Default::default()
            }),
            3 if !in_session => run_request::Payload::from(ModuleRun {
                model: self.text.clone(),
                rows: vec![
                    ModuleRow {
                        values: vec![0.1, -0.0, f64::MAX],
                        ..Default::default()
                    };
                    self.files
                ],
                end_time: 1.5,
                step: 0.1,
                ..Default::default()
            }),
            _ => run_request::Payload::from(JavaScriptRun {
                code: self.text.clone(),
                ..Default::default()
            }),
        };
        RunRequest {
            protocol: 3,
            timeout_ms: 1000,
            payload: Some(payload),
            ..Default::default()
        }
    }

    fn result(&self, request: &RunRequest) -> run_response::Result {
        let output = self.text.as_bytes().to_vec();
        match &request.payload {
            Some(run_request::Payload::Project(_)) => run_response::Result::from(ProjectResult {
                steps: (0..self.steps)
                    .map(|_| StepResult {
                        command: self.text.clone(),
                        stdout: output.clone(),
                        exit_code: self.exit_code,
                        ..Default::default()
                    })
                    .collect(),
                outcome: ProjectOutcome::PROJECT_OUTCOME_COMPLETED.into(),
                artifacts: (0..self.files)
                    .map(|i| Artifact {
                        path: format!("out/{i}{}", self.text),
                        content: output.clone(),
                        ..Default::default()
                    })
                    .collect(),
                ..Default::default()
            }),
            Some(run_request::Payload::Cell(_)) => run_response::Result::from(CellResult {
                stderr: output,
                exit_code: self.exit_code,
                interpreter_started: true,
                ..Default::default()
            }),
            Some(run_request::Payload::Module(_)) => run_response::Result::from(ModuleResult {
                runs: vec![
                    ModuleRowResult {
                        status: self.exit_code,
                        outputs: vec![1.0, 2.5],
                        ..Default::default()
                    };
                    self.files
                ],
                width: 2,
                outcome: ProjectOutcome::PROJECT_OUTCOME_COMPLETED.into(),
                stdout: output,
                ..Default::default()
            }),
            _ => run_response::Result::from(JavaScriptResult {
                stdout: output,
                exit_code: self.exit_code,
                timed_out: self.exit_code == 124,
                ..Default::default()
            }),
        }
    }

    /// The call after those of `chain`, and its record.
    fn entry(&self, chain: Option<&Chain>) -> (Entry, RunRecord) {
        let request = self.request(chain.is_some());
        let facts = Facts {
            request: request_digest(&request),
            rule: &Rule::default(),
            policy: &self.policy,
            started_unix_ms: self.started_unix_ms,
            ended_unix_ms: self.started_unix_ms + 7,
            chain,
        };
        if self.unanswered && chain.is_some() {
            let stated = Stated {
                provider: self.provider.clone(),
                isolation: self.isolation.clone(),
                environment: self.environment.clone(),
                software_identity: self.software.clone(),
            };
            let record = make::unanswered(&facts, &stated, Code::DeadlineExceeded);
            return (Entry::unanswered(&request, &record).unwrap(), record);
        }
        let mut response = RunResponse {
            sandbox: self.provider.clone(),
            isolation: self.isolation.clone(),
            environment: self.environment.clone(),
            software_identity: self.software.clone(),
            result: Some(self.result(&request)),
            ..Default::default()
        };
        let record = make::answered(&facts, &response);
        response.record = MessageField::some(record.clone());
        (Entry::answered(&request, &response).unwrap(), record)
    }
}

/// A bundle of single runs and a checkpoint.
pub fn runs(key: &SigningKey, shapes: &[Shape]) -> Vec<u8> {
    let mut writer = BundleWriter::new(Vec::new(), key);
    for shape in shapes {
        writer.entry(&shape.entry(None).0.sign(key)).unwrap();
    }
    writer.checkpoint().unwrap();
    writer.into_inner()
}

/// A bundle of one closed session and a checkpoint; gives the fingerprint too.
pub fn session(key: &SigningKey, shapes: impl IntoIterator<Item = Shape>) -> (Vec<u8>, String) {
    let mut chain = Chain::of_session_id("made-up");
    let mut writer = BundleWriter::new(Vec::new(), key);
    for shape in shapes {
        let (entry, record) = shape.entry(Some(&chain));
        chain.advance(&record).unwrap();
        writer.entry(&entry.sign(key)).unwrap();
    }
    let close = Entry::close(&chain, chain.calls(), chain.last()).unwrap();
    writer.entry(&close.sign(key)).unwrap();
    writer.checkpoint().unwrap();
    (writer.into_inner(), chain.fingerprint().to_owned())
}
