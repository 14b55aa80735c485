//! A key and a folder for one bundle.
#![allow(dead_code)]

use std::{fs, path::PathBuf, time::Duration};

use plimsoll_attestation::{
    SigningKey,
    bundle::{Report, verify},
};
use plimsoll_client::Options;
use plimsoll_harness::{Ledger, RunFailure, RunPlan, Target, run, run::RunReport};

use super::{fake::Fake, support::snippet};

pub struct Case {
    pub folder: tempfile::TempDir,
    pub key: SigningKey,
}

impl Case {
    pub fn new() -> Case {
        Case {
            folder: tempfile::tempdir().unwrap(),
            key: SigningKey::generate().unwrap(),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("runs.jsonl")
    }

    pub fn ledger(&self) -> Ledger {
        Ledger::new(self.path(), false)
    }

    pub fn plan<'a, D>(&'a self, ledger: &'a Ledger<D>, options: Options) -> RunPlan<'a, D> {
        RunPlan {
            target: Target::Remote(Box::new(options)),
            key: &self.key,
            ledger,
            request: snippet("1"),
            wait: Duration::from_secs(20),
            save_artifacts: None,
            cancel: None,
            on_phase: &|_| {},
        }
    }

    pub async fn run(&self, fake: &Fake) -> RunReport {
        let ledger = self.ledger();
        run(self.plan(&ledger, fake.options()), &mut ()).await
    }

    pub fn verify(&self) -> Report {
        let bytes = fs::read(self.path()).unwrap();
        verify(&*bytes, std::slice::from_ref(self.key.public()), &mut ()).unwrap()
    }

    pub fn files(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

pub fn failure(report: &RunReport) -> &RunFailure {
    report.result.as_ref().unwrap_err()
}
